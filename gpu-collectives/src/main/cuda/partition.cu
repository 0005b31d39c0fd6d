/* Partitions a table on the device: which rows go where, and tables packed one behind the other. */
#include "partition.h"
#include "partition_hash.h"
#include "partition_sort.h"
#include "partition_pack.h"
