/*
 * The OpenMPI side of "weft bench collectives". Rank 0 reads orders from standard input, a line
 * each. All ranks execute them. Rank 0 writes the answers to standard output, a line each.
 *
 *   order:  OPERATION TYPE REDUCTION COUNT IN_PLACE CHECK ITERATIONS
 *   answer: done NANOSECONDS CPU_NANOSECONDS ERRORS   (of the slowest rank, sum, sum)
 *           unsupported
 *
 * COUNT is the number of elements of the smaller buffer of a rank; of a ragged all-to-all, of each
 * buffer, whose parts are those of RaggedParts. With CHECK the operation runs once on known values
 * and the results are compared; otherwise it is timed. Build: mpicc -O2 -o mpi-collectives FILE
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The number of evenly spread elements of every part of a buffer that are set and compared. */
#define COMPARED (1 << 20)

typedef struct {
  char operation[32];
  char type[32];
  char reduction[32];
  long count;
  int in_place;
  int check;
  int iterations;
  int quit;
} order_t;

static int rank, nranks;
static char *send_memory, *receive_memory;
static size_t capacity;

/* The parts of a ragged all-to-all by peer: elements, and the first one in the buffer. */
static int *sent_sizes, *sent_starts, *received_sizes, *received_starts;

static int64_t now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static MPI_Datatype type_of(const char *name) {
  if (!strcmp(name, "int8")) return MPI_INT8_T;
  if (!strcmp(name, "int16")) return MPI_INT16_T;
  if (!strcmp(name, "int32")) return MPI_INT32_T;
  if (!strcmp(name, "int64")) return MPI_INT64_T;
  if (!strcmp(name, "float32")) return MPI_FLOAT;
  if (!strcmp(name, "float64")) return MPI_DOUBLE;
  return MPI_DATATYPE_NULL;
}

static MPI_Op reduction_of(const char *name) {
  if (!strcmp(name, "sum")) return MPI_SUM;
  if (!strcmp(name, "min")) return MPI_MIN;
  if (!strcmp(name, "max")) return MPI_MAX;
  return MPI_OP_NULL;
}

static int is(const order_t *order, const char *operation) {
  return !strcmp(order->operation, operation);
}

/* Whether the send buffer (below: the receive buffer) has a part for every rank. */
static int sends_parts(const order_t *order) {
  return is(order, "reduce-scatter") || is(order, "all-to-all");
}

static int receives_parts(const order_t *order) {
  return is(order, "all-gather") || is(order, "all-to-all");
}

static int in_parts(const order_t *order) {
  return sends_parts(order) || receives_parts(order);
}

/* The first element of part k of a ragged all-to-all, which goes to the kth rank after the sender. */
static long part_start(const order_t *order, int part) {
  return order->count * part * (part + 1) / (nranks * (nranks + 1L));
}

static void part(const order_t *order, int from, int to, int *size, int *start) {
  int number = (to - from + nranks) % nranks;
  *start = (int)part_start(order, number);
  *size = (int)(part_start(order, number + 1) - *start);
}

static void set_parts(const order_t *order) {
  for (int peer = 0; peer < nranks; peer++) {
    part(order, rank, peer, &sent_sizes[peer], &sent_starts[peer]);
    part(order, peer, rank, &received_sizes[peer], &received_starts[peer]);
  }
}

static int part_sender(long index) {
  int peer = 0;
  while (index < received_starts[peer] || index - received_starts[peer] >= received_sizes[peer]) {
    peer++;
  }
  return peer;
}

static double value(long index, int of_rank) {
  return (double)((index * 7 + of_rank * 3) % 11);
}

static void put(char *memory, const char *type, long index, double number) {
  if (!strcmp(type, "int8")) ((int8_t *)memory)[index] = (int8_t)number;
  else if (!strcmp(type, "int16")) ((int16_t *)memory)[index] = (int16_t)number;
  else if (!strcmp(type, "int32")) ((int32_t *)memory)[index] = (int32_t)number;
  else if (!strcmp(type, "int64")) ((int64_t *)memory)[index] = (int64_t)number;
  else if (!strcmp(type, "float32")) ((float *)memory)[index] = (float)number;
  else ((double *)memory)[index] = number;
}

static double get(const char *memory, const char *type, long index) {
  if (!strcmp(type, "int8")) return ((const int8_t *)memory)[index];
  if (!strcmp(type, "int16")) return ((const int16_t *)memory)[index];
  if (!strcmp(type, "int32")) return ((const int32_t *)memory)[index];
  if (!strcmp(type, "int64")) return (double)((const int64_t *)memory)[index];
  if (!strcmp(type, "float32")) return ((const float *)memory)[index];
  return ((const double *)memory)[index];
}

/* Allocates memory and touches it, so that no page fault occurs during the measurement. */
static void reserve(size_t bytes) {
  if (bytes <= capacity) return;
  free(send_memory);
  free(receive_memory);
  if (posix_memalign((void **)&send_memory, 4096, bytes) ||
      posix_memalign((void **)&receive_memory, 4096, bytes)) {
    fprintf(stderr, "no memory for 2 buffers of %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  memset(send_memory, 0, bytes);
  memset(receive_memory, 0, bytes);
  capacity = bytes;
}

static void run(const order_t *order, MPI_Datatype type, MPI_Op op) {
  int count = (int)order->count;
  int bytes;
  MPI_Type_size(type, &bytes);
  const void *source = order->in_place ? MPI_IN_PLACE : send_memory;
  char *buffer = receive_memory;
  if (is(order, "all-reduce")) {
    MPI_Allreduce(source, buffer, count, type, op, MPI_COMM_WORLD);
  } else if (is(order, "all-gather")) {
    MPI_Allgather(source, count, type, buffer, count, type, MPI_COMM_WORLD);
  } else if (is(order, "reduce-scatter")) {
    MPI_Reduce_scatter_block(source, buffer, count, type, op, MPI_COMM_WORLD);
  } else if (is(order, "all-to-all")) {
    MPI_Alltoall(source, count, type, buffer, count, type, MPI_COMM_WORLD);
  } else if (is(order, "ragged-all-to-all")) {
    MPI_Alltoallv(source, sent_sizes, sent_starts, type, buffer, received_sizes, received_starts,
                  type, MPI_COMM_WORLD);
  } else if (is(order, "broadcast")) {
    MPI_Bcast(buffer, count, type, 0, MPI_COMM_WORLD);
  } else if (is(order, "reduce")) {
    const void *mine = order->in_place && rank != 0 ? buffer : source;
    MPI_Reduce(mine, buffer, count, type, op, 0, MPI_COMM_WORLD);
  }
}

static double reduced(const order_t *order, long index) {
  double all = value(index, 0);
  for (int r = 1; r < nranks; r++) {
    double next = value(index, r);
    if (!strcmp(order->reduction, "sum")) all += next;
    else if (!strcmp(order->reduction, "min")) all = next < all ? next : all;
    else all = next > all ? next : all;
  }
  return all;
}

static double expected(const order_t *order, long index) {
  long part = index / order->count, within = index % order->count;
  if (is(order, "all-gather")) return value(within, (int)part);
  if (is(order, "all-to-all")) return value(rank * order->count + within, (int)part);
  if (is(order, "ragged-all-to-all")) return value(index, part_sender(index));
  if (is(order, "reduce-scatter")) return reduced(order, rank * order->count + within);
  if (is(order, "broadcast")) return value(index, 0);
  return reduced(order, index);
}

static int64_t check(const order_t *order, MPI_Datatype type, MPI_Op op) {
  long sent = order->count * (sends_parts(order) ? nranks : 1);
  long received = order->count * (receives_parts(order) ? nranks : 1);
  long stride = 1 + order->count / COMPARED;
  int bytes;
  MPI_Type_size(type, &bytes);
  char *from = send_memory;
  if (order->in_place || is(order, "broadcast")) {
    from = receive_memory;
    if (is(order, "all-gather")) from += (size_t)rank * order->count * bytes;
  }
  for (long start = 0; start < sent; start += order->count) {
    for (long i = start; i < start + order->count; i += stride) {
      put(from, order->type, i, value(i, rank));
    }
  }
  run(order, type, op);
  int64_t errors = 0;
  if (is(order, "reduce") && rank != 0) return 0;
  for (long start = 0; start < received; start += order->count) {
    for (long i = start; i < start + order->count; i += stride) {
      if (get(receive_memory, order->type, i) != expected(order, i)) errors++;
    }
  }
  return errors;
}

static void follow(const order_t *order) {
  MPI_Datatype type = type_of(order->type);
  MPI_Op op = reduction_of(order->reduction);
  if (type == MPI_DATATYPE_NULL || op == MPI_OP_NULL || order->count > INT32_MAX) {
    if (rank == 0) printf("unsupported\n");
    return;
  }
  int bytes;
  MPI_Type_size(type, &bytes);
  reserve((size_t)order->count * bytes * (in_parts(order) ? nranks : 1));
  set_parts(order);
  int64_t errors = 0, cpu = 0, time = 0;
  if (order->check) {
    errors = check(order, type, op);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t cpu_start = now(CLOCK_PROCESS_CPUTIME_ID), start = now(CLOCK_MONOTONIC);
    for (int i = 0; i < order->iterations; i++) run(order, type, op);
    time = now(CLOCK_MONOTONIC) - start;
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
  }
  int64_t slowest = 0, sums[2] = {cpu, errors}, all[2] = {0, 0};
  MPI_Reduce(&time, &slowest, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(sums, all, 2, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("done %lld %lld %lld\n", (long long)slowest, (long long)all[0], (long long)all[1]);
}

/* The other ranks sleep while they wait, so that they use no processor between orders. */
static void next_order(order_t *order) {
  if (rank == 0) {
    char line[256];
    memset(order, 0, sizeof *order);
    order->quit = !fgets(line, sizeof line, stdin) ||
                  sscanf(line, "%31s %31s %31s %ld %d %d %d", order->operation, order->type,
                         order->reduction, &order->count, &order->in_place, &order->check,
                         &order->iterations) != 7;
  }
  MPI_Request request;
  int arrived = 0;
  MPI_Ibcast(order, sizeof *order, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  while (MPI_Test(&request, &arrived, MPI_STATUS_IGNORE), !arrived) usleep(2000);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &nranks);
  sent_sizes = malloc(4 * nranks * sizeof *sent_sizes);
  sent_starts = sent_sizes + nranks;
  received_sizes = sent_starts + nranks;
  received_starts = received_sizes + nranks;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (rank == 0) printf("ready %d\n", nranks);
  order_t order;
  for (next_order(&order); !order.quit; next_order(&order)) {
    follow(&order);
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
