/* A stand-in for libnvrtc: the cubin of a program is "FAKE" and its source, if every include is among the headers. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char *cubin;
    char log[256];
    int num_headers;
    const char *const *names;
} Program;

static char options[256];
static int num_compiled;

const char *fake_nvrtc_options(void) { return options; }
int fake_nvrtc_num_compiled(void) { return num_compiled; }

int nvrtcVersion(int *major, int *minor) {
    *major = 13, *minor = 0;
    return 0;
}
int nvrtcCreateProgram(Program **program, const char *source, const char *name, int num_headers,
                       const char *const *headers, const char *const *names) {
    (void)name, (void)headers;
    Program *p = calloc(1, sizeof *p);
    p->cubin = malloc(strlen(source) + 5);
    sprintf(p->cubin, "FAKE%s", source);
    p->num_headers = num_headers, p->names = names;
    *program = p;
    return 0;
}
int nvrtcCompileProgram(Program *program, int num_options, const char *const *given) {
    char text[256] = "";
    for (int i = 0; i < num_options; i++) snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", given[i]);
    memcpy(options, text, sizeof options);
    const char mark[] = "#include \"";
    for (const char *at = strstr(program->cubin, mark); at; at = strstr(at, mark)) {
        at += sizeof mark - 1;
        const size_t len = strcspn(at, "\"");
        int found = 0;
        for (int i = 0; i < program->num_headers; i++) {
            found |= strlen(program->names[i]) == len && !strncmp(program->names[i], at, len);
        }
        if (!found) {
            snprintf(program->log, sizeof program->log, "no header %.*s", (int)len, at);
            return 6;
        }
    }
    __atomic_fetch_add(&num_compiled, 1, __ATOMIC_RELAXED);
    return 0;
}
int nvrtcGetProgramLogSize(Program *program, size_t *size) {
    *size = strlen(program->log);
    return 0;
}
int nvrtcGetProgramLog(Program *program, char *log) {
    memcpy(log, program->log, strlen(program->log));
    return 0;
}
int nvrtcGetCUBINSize(Program *program, size_t *size) {
    *size = strlen(program->cubin) + 1;
    return 0;
}
int nvrtcGetCUBIN(Program *program, char *cubin) {
    strcpy(cubin, program->cubin);
    return 0;
}
int nvrtcDestroyProgram(Program **program) {
    free((*program)->cubin);
    free(*program);
    return 0;
}
