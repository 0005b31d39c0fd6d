/*
 * Writes one column of a query as one feature of a training: a row's tensor of 4-byte floats gets
 * (value - mean) * scale at the column's place, or 0 for null.
 */
#include "../../../../gpu-collectives/src/main/cuda/kernel.h"

/* Bits of validity: 1 for a value, lowest first; a null pointer if no row is null. */
INLINE void write_feature(float *to, const double *from, const uint8_t *validity, int64_t row,
                          int64_t columns, int64_t column, double mean, double scale) {
  int is_value = validity == 0 || (validity[row >> 3] >> (row & 7) & 1);
  to[row * columns + column] = is_value ? (float)((from[row] - mean) * scale) : 0.0f;
}

#ifdef __CUDACC__

extern "C" __global__ void __launch_bounds__(256)
    features(float *to, const double *from, const uint8_t *validity, int64_t rows,
             int64_t columns, int64_t column, double mean, double scale) {
  EACH(row, rows) {
    write_feature(to, from, validity, row, columns, column, mean, scale);
  }
}

#else

/* The test double passes parameters of 8 bytes each as the fields of a struct. */
struct features_parameters {
  float *to;
  const double *from;
  const uint8_t *validity;
  int64_t rows;
  int64_t columns;
  int64_t column;
  double mean;
  double scale;
};

KERNEL(features, features_parameters, 256) {
  EACH(row, a.rows) {
    write_feature(a.to, a.from, a.validity, row, a.columns, a.column, a.mean, a.scale);
  }
}

#endif
