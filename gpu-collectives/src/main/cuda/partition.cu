/* Partitions a table on the device: assigns rows to partitions, and packs the partitions one after
 * the other. */
#include "partition.h"
#include "partition_hash.h"
#include "partition_sort.h"
#include "partition_pack.h"
