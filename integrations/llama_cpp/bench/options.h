// What the command line of the sweep says.
#pragma once

#include <string>

struct Options {
    std::string backends, module, csv;
    // The library's best instruction set, and which of the engine's CPU libraries; empty for the best here.
    std::string isa, engine;
    int threads = 2;
    // Turns of a shape: this many, or fewer when the next one would end after this time.
    int turns = 9;
    double seconds = 60;
    // Shapes: with so many queries, and with no more cells; 0 for any.
    int queries = 0, most_cells = 0;
    bool check = false, quick = false;
};

// Writes what is wrong to stderr and exits where the arguments cannot be followed.
Options options_of(int argc, char ** argv);
