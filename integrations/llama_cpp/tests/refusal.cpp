// A module built for another version of ggml's interface: refused with a message, and the engine runs without it.
//
//     refusal BACKENDS MODULE MODEL.gguf
#include "session.h"

#include <cstdio>

int main(int argc, char ** argv) {
    if (argc != 4) {
        return 2;
    }
    start(argv[1], argv[2]);
    if (all_messages().find("incompatible API version") == std::string::npos) {
        printf("the module is not refused:\n%s", all_messages().c_str());
        return 1;
    }
    const Model model(argv[3], true);
    if (Session(model, Options()).decode({{0, 0, {1, 2, 3}}}).size() != 3) {
        printf("the engine does not run without the module:\n%s", all_messages().c_str());
        return 1;
    }
    return 0;
}
