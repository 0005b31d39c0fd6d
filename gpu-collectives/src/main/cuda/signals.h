/* The words by which ranks find each other, beside what they share. */
#ifndef WEFT_SIGNALS_H
#define WEFT_SIGNALS_H

#include "system.h"

#define MOST_RANKS 16

/* The first words of what every rank shares beside its rows; all of them start as zero. */
struct signals {
  uint32_t came[MOST_RANKS]; /* in how many barriers a rank was seen here */
  uint32_t barriers;         /* in how many this rank was */
  uint32_t failed;           /* a barrier was given up: nothing is written any more */
  uint32_t gone[MOST_RANKS]; /* ranks that write here no more */
};

#endif
