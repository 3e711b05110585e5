// Two sessions in step: the stock engine, whose choices are followed, and the one with the module.
#pragma once

#include "session.h"

#include <functional>

// How far the second session's distributions are from the first's.
struct Distance {
    size_t rows = 0;
    double total_kl = 0;
    double largest_kl = 0;
    double largest_difference = 0;
    size_t same_choice = 0;
    bool finite = true;

    void add(const std::vector<float> & wanted, const std::vector<float> & got);
    double mean_kl() const { return rows == 0 ? 0 : total_kl / static_cast<double>(rows); }
};

class Pair {
public:
    Pair(Session stock, Session ours) : stock(std::move(stock)), ours(std::move(ours)) {}

    // Decodes in both; gives the stock session's choice for every token of the batch.
    std::vector<llama_token> decode(const std::vector<Tokens> & batch);

    // Does the same to the memory of both.
    void both(const std::function<void(Session &)> & change);

    Session stock, ours;
    Distance distance;
};

llama_token largest(const std::vector<float> & logits);
