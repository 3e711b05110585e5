/* What the sessions share: inputs, and attention as a plain loop in double precision. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CONTENT 512
#define ROPE 64

/* Numbers in -1..1, the same on every machine. */
static float next_number(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

static inline void fill(float *to, size_t count, uint32_t *state) {
  size_t i;
  for (i = 0; i < count; i++) {
    to[i] = next_number(state);
  }
}

/* E4M3 "fn": no infinity, exponent bias 7. */
static inline double from_e4m3(uint8_t byte) {
  const int exponent = (byte >> 3) & 15;
  const double mantissa = (double)(byte & 7);
  const double size = exponent == 0 ? ldexp(mantissa, -9) : ldexp(8.0 + mantissa, exponent - 10);
  return (byte & 128) != 0 ? -size : size;
}

static inline double from_bf16(uint16_t half) {
  const uint32_t bits = (uint32_t)half << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return (double)value;
}

/* A quantised query row as the doubles it stands for. */
static inline void dequantise(double *row, const uint8_t *content, const uint16_t *rope, float scale) {
  int i;
  for (i = 0; i < CONTENT; i++) {
    row[i] = from_e4m3(content[i]) * (double)scale;
  }
  for (i = 0; i < ROPE; i++) {
    row[CONTENT + i] = from_bf16(rope[i]) * (double)scale;
  }
}

/* One row of attention over `tokens` keys of CONTENT + ROPE numbers, whose first CONTENT are the values. */
static double attend(double *out, const double *query, const float *keys, int tokens, double softmax_scale) {
  double largest = -INFINITY, sum = 0.0;
  int t, i, pass;
  for (i = 0; i < CONTENT; i++) {
    out[i] = 0.0;
  }
  for (pass = 0; pass < 2; pass++) {
    for (t = 0; t < tokens; t++) {
      const float *key = keys + (size_t)t * (CONTENT + ROPE);
      double logit = 0.0;
      for (i = 0; i < CONTENT + ROPE; i++) {
        logit += query[i] * (double)key[i];
      }
      logit *= softmax_scale;
      if (pass == 0) {
        largest = logit > largest ? logit : largest;
      } else {
        const double weight = exp(logit - largest);
        sum += weight;
        for (i = 0; i < CONTENT; i++) {
          out[i] += weight * (double)key[i];
        }
      }
    }
  }
  for (i = 0; i < CONTENT && tokens > 0; i++) {
    out[i] /= sum;
  }
  return tokens > 0 ? largest + log(sum) : -INFINITY;
}

/* Relative L2 distance of a row. */
static double distance(const float *got, const double *wanted, int count) {
  double wrong = 0.0, size = 0.0;
  int i;
  for (i = 0; i < count; i++) {
    const double difference = (double)got[i] - wanted[i];
    wrong += difference * difference;
    size += wanted[i] * wanted[i];
  }
  return sqrt(wrong / size);
}

#endif
