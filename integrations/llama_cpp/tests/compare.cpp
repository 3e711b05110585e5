#include "compare.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

static std::vector<double> log_probabilities(const std::vector<float> & logits) {
    const double max = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (float logit : logits) {
        sum += std::exp(logit - max);
    }
    std::vector<double> result;
    for (float logit : logits) {
        result.push_back(logit - max - std::log(sum));
    }
    return result;
}

llama_token largest(const std::vector<float> & logits) {
    return static_cast<llama_token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void Distance::add(const std::vector<float> & wanted, const std::vector<float> & got) {
    const std::vector<double> p = log_probabilities(wanted), q = log_probabilities(got);
    double kl = 0;
    for (size_t i = 0; i < p.size(); i++) {
        kl += std::exp(p[i]) * (p[i] - q[i]);
        largest_difference = std::max(largest_difference, std::abs(static_cast<double>(wanted[i]) - got[i]));
        finite = finite && std::isfinite(got[i]);
    }
    rows++;
    total_kl += kl;
    largest_kl = std::max(largest_kl, kl);
    same_choice += largest(wanted) == largest(got);
}

std::vector<llama_token> Pair::decode(const std::vector<Tokens> & batch) {
    const auto wanted = stock.decode(batch), got = ours.decode(batch);
    if (wanted.empty() || wanted.size() != got.size()) {
        throw std::runtime_error("a batch failed to decode");
    }
    std::vector<llama_token> choices;
    for (size_t i = 0; i < wanted.size(); i++) {
        distance.add(wanted[i], got[i]);
        choices.push_back(largest(wanted[i]));
    }
    return choices;
}

void Pair::both(const std::function<void(Session &)> & change) {
    change(stock);
    change(ours);
}
