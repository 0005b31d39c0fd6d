/* The words in which ranks signal each other, beside the memory that they share. */
#ifndef WEFT_SIGNALS_H
#define WEFT_SIGNALS_H

#include "system.h"

#define MAX_RANKS 16

/* The first words beside a rank's memory; all of them start as zero. */
struct signals {
  uint32_t arrived[MAX_RANKS]; /* how many barriers each rank has reached, as seen here. */
  uint32_t barriers;            /* how many barriers this rank has passed. */
  uint32_t failed;              /* a barrier failed: nothing is written any more. */
  uint32_t gone[MAX_RANKS];    /* ranks that write here no more. */
};

#endif
