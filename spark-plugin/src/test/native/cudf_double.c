/*
 * A test double of libcudfjni: the native methods of cudf's Java classes that Weft calls, on top of
 * the double of libcuda, whose device memory is host memory. It reads device data, as cudf would on
 * the device, once the calling thread's default stream is idle; its writes and frees are enqueued
 * on that stream. Invalid memory places, dead handles and calls before its memory is initialised
 * are violations, which tests read with those of libcuda's double.
 */
#define _GNU_SOURCE
#include "gpu_double.h"

#include <jni.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PER_THREAD ((void *)2)
#define NOT_READY 600
#define ALIGNMENT 64
#define MAX_POLLS 600000

enum { UINT8 = 5, BOOL8 = 11, STRING = 23, LIST = 24, STRUCT = 28, TYPES = 29 };

static const int widths[TYPES] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 1, 4, 8, 8,
                                  8, 8, 4, 8, 8, 8, 8, 0, 0, 0, 4, 8, 16, 0};

/* Functions of the double of libcuda. */
extern int cuMemAlloc_v2(void **start, size_t bytes);
extern int cuMemFree_v2(void *start);
extern int cuStreamQuery(void *stream);
extern int cuDevicePrimaryCtxRetain(void **context, int device);
extern int cuDevicePrimaryCtxRelease_v2(int device);
extern int cuCtxSetCurrent(void *context);

enum kind { VIEW, COLUMN, TABLE };

struct view {
  int type;
  int scale;
  int size;
  int nulls;
  int wide; /* Whether the offsets have 8 bytes. */
  char *data;
  uint32_t *valid;
  int32_t *offsets;
  struct view *child; /* The child of a list. */
};

struct handle {
  enum kind kind;
  struct view view; /* The memory of a column. */
  int count;        /* Number of columns of a table. */
  struct view *columns;
  struct handle *next;
};

static const char *names[] = {"views", "columns", "tables"};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct handle *handles;
static int device = -1; /* The GPU that has cudf's memory. */
static int resources;
static int resting;
static int large;

/* ---- functions for tests ---- */

/* The handles that were not closed, as text. */
void cudfDoubleLive(char *text, int size) {
  int live[3] = {0, 0, 0};
  pthread_mutex_lock(&lock);
  for (struct handle *each = handles; each != NULL; each = each->next) {
    live[each->kind]++;
  }
  pthread_mutex_unlock(&lock);
  text[0] = 0;
  for (int kind = 0; kind < 3; kind++) {
    if (live[kind] > 0) {
      size_t length = strlen(text);
      snprintf(text + length, size - length, "%s of cudf: %d\n", names[kind], live[kind]);
    }
  }
}

/* Number of threads that wait for their stream. */
int cudfDoubleResting(void) { return __atomic_load_n(&resting, __ATOMIC_SEQ_CST); }

/* Sets whether strings are made with offsets of 8 bytes from now on. */
void cudfDoubleLarge(int now) { large = now; }

/* ---- the device ---- */

static void use_device(int wanted) {
  void *context;
  if (double_current_device() != wanted && cuDevicePrimaryCtxRetain(&context, wanted) == 0) {
    cuCtxSetCurrent(context);
    cuDevicePrimaryCtxRelease_v2(wanted);
  }
}

static void enter(const char *caller) {
  if (device < 0) {
    double_violation("%s before cudf's memory was initialised", caller);
  } else {
    use_device(device);
  }
}

/*
 * Waits until the work on this thread's stream is complete, as cudf does when it copies a number to
 * the host.
 */
static void rest(const char *caller) {
  __atomic_add_fetch(&resting, 1, __ATOMIC_SEQ_CST);
  int result = cuStreamQuery(PER_THREAD);
  for (int polls = 0; result == NOT_READY && polls < MAX_POLLS; polls++) {
    usleep(100);
    result = cuStreamQuery(PER_THREAD);
  }
  __atomic_sub_fetch(&resting, 1, __ATOMIC_SEQ_CST);
  if (result != 0) {
    double_violation("%s: the stream gave %d", caller, result);
  }
}

struct write {
  void *to;
  void *from;
  size_t bytes;
};

static void run_write(void *argument) {
  struct write *write = argument;
  memcpy(write->to, write->from, write->bytes);
  free(write->from);
  free(write);
}

static void run_free(void *argument) {
  void *context;
  struct write *freed = argument;
  int of = (int)freed->bytes;
  cuDevicePrimaryCtxRetain(&context, of);
  cuCtxSetCurrent(context);
  cuMemFree_v2(freed->to);
  cuDevicePrimaryCtxRelease_v2(of);
  free(freed);
}

static void *allocate(size_t bytes) {
  void *start = NULL;
  if (bytes > 0 && cuMemAlloc_v2(&start, bytes) != 0) {
    double_violation("cudf has no memory for %zu bytes", bytes);
  }
  return start;
}

static void enqueue(void (*run)(void *), struct write work, const struct double_range *ranges,
                    int count) {
  static const struct double_work none;
  struct double_work kind = none;
  kind.run = run;
  struct write *argument = malloc(sizeof *argument);
  *argument = work;
  double_enqueue(PER_THREAD, &kind, argument, ranges, count);
}

/* Frees in the order of the stream, as a pool does. */
static void free_later(void *start) {
  if (start != NULL) {
    enqueue(run_free, (struct write){start, NULL, device}, NULL, 0);
  }
}

/* Makes device memory with a copy of host memory, and takes ownership of it. */
static void *uploaded(void *from, size_t bytes) {
  void *to = allocate(bytes);
  if (to == NULL) {
    free(from);
    return NULL;
  }
  struct double_range range = {to, bytes};
  enqueue(run_write, (struct write){to, from, bytes}, &range, 1);
  return to;
}

static void require_place(const void *start, size_t bytes, const char *what) {
  if (bytes > 0 && !double_is_on_device(start, bytes, device)) {
    double_violation("%zu bytes of %s are not on cudf's device", bytes, what);
  }
  if ((uintptr_t)start % ALIGNMENT != 0) {
    double_violation("%s begin at %p", what, start);
  }
}

/* ---- views ---- */

static struct view cloned(const struct view *view) {
  struct view copy = *view;
  if (view->child != NULL) {
    copy.child = malloc(sizeof *copy.child);
    *copy.child = cloned(view->child);
  }
  return copy;
}

static void drop(struct view *view) {
  if (view->child != NULL) {
    drop(view->child);
    free(view->child);
  }
}

static jlong add(struct handle made) {
  struct handle *handle = malloc(sizeof *handle);
  *handle = made;
  pthread_mutex_lock(&lock);
  handle->next = handles;
  handles = handle;
  pthread_mutex_unlock(&lock);
  return (jlong)(intptr_t)handle;
}

static int is_live(jlong handle, enum kind kind, const char *caller) {
  pthread_mutex_lock(&lock);
  struct handle *each = handles;
  while (each != NULL && each != (struct handle *)(intptr_t)handle) {
    each = each->next;
  }
  int found = each != NULL && each->kind == kind;
  pthread_mutex_unlock(&lock);
  if (!found) {
    double_violation("%s of none of the %s", caller, names[kind]);
  }
  return found;
}

static const struct view nothing;

static const struct view *view_of(jlong handle, const char *caller) {
  enter(caller);
  return is_live(handle, VIEW, caller) ? &((struct handle *)(intptr_t)handle)->view : &nothing;
}

static struct handle *removed(jlong handle, enum kind kind, const char *caller) {
  if (!is_live(handle, kind, caller)) {
    return NULL;
  }
  pthread_mutex_lock(&lock);
  struct handle **each = &handles;
  while (*each != (struct handle *)(intptr_t)handle) {
    each = &(*each)->next;
  }
  struct handle *found = *each;
  *each = found->next;
  pthread_mutex_unlock(&lock);
  return found;
}

static int is_valid(const struct view *view, int row) {
  return view->valid == NULL || (view->valid[row / 32] >> row % 32 & 1);
}

static int count_nulls(const struct view *view) {
  int nulls = 0;
  for (int row = 0; row < view->size; row++) {
    nulls += !is_valid(view, row);
  }
  return nulls;
}

static size_t mask_bytes(int rows) { return ((size_t)rows + 511) / 512 * 64; }

#define VIEW_METHOD(type, name) \
  JNIEXPORT type JNICALL Java_ai_rapids_cudf_ColumnView_##name(JNIEnv *env, jclass self, jlong handle)
#define UNUSED \
  (void)env;   \
  (void)self

JNIEXPORT jlong JNICALL Java_ai_rapids_cudf_ColumnView_makeCudfColumnView(
    JNIEnv *env, jclass self, jint type, jint scale, jlong data, jlong bytes, jlong offsets,
    jlong valid, jint nulls, jint size, jlongArray children) {
  (void)self;
  enter("makeCudfColumnView");
  struct view view = {type, scale, size, valid == 0 ? 0 : nulls, 0, (char *)data, (uint32_t *)valid,
                      (int32_t *)offsets, NULL};
  require_place(view.data, bytes, "values");
  if (widths[type] > 0 && (size_t)bytes < (size_t)widths[type] * size) {
    double_violation("%ld bytes of values for %d rows of type %d", (long)bytes, size, type);
  }
  if (valid != 0) {
    require_place(view.valid, mask_bytes(size), "validity bits, with what cudf pads them by,");
  }
  if ((type == STRING || type == LIST) && size > 0) {
    require_place(view.offsets, ((size_t)size + 1) * 4, "offsets");
  }
  if (type == LIST) {
    jlong child = 0;
    if (children == NULL || (*env)->GetArrayLength(env, children) != 1) {
      double_violation("a list without its child");
      return 0;
    }
    (*env)->GetLongArrayRegion(env, children, 0, 1, &child);
    view.child = malloc(sizeof *view.child);
    *view.child = cloned(view_of(child, "a list"));
  }
  if (view.valid != NULL && view.nulls < 0) {
    rest("a count of nulls");
    view.nulls = count_nulls(&view);
  }
  return add((struct handle){.kind = VIEW, .view = view});
}

VIEW_METHOD(void, deleteColumnView) {
  UNUSED;
  struct handle *found = removed(handle, VIEW, "deleteColumnView");
  if (found != NULL) {
    drop(&found->view);
    free(found);
  }
}

VIEW_METHOD(jint, getNativeTypeId) {
  UNUSED;
  return view_of(handle, "getNativeTypeId")->type;
}

VIEW_METHOD(jint, getNativeTypeScale) {
  UNUSED;
  return view_of(handle, "getNativeTypeScale")->scale;
}

VIEW_METHOD(jint, getNativeRowCount) {
  UNUSED;
  return view_of(handle, "getNativeRowCount")->size;
}

VIEW_METHOD(jint, getNativeNullCount) {
  UNUSED;
  return view_of(handle, "getNativeNullCount")->nulls;
}

VIEW_METHOD(jlong, getNativeDataAddress) {
  UNUSED;
  const struct view *view = view_of(handle, "getNativeDataAddress");
  int has_data = view->type != LIST && view->type != STRUCT && (view->type != STRING || view->size > 0);
  return has_data ? (jlong)(intptr_t)view->data : 0;
}

static int64_t offset_at(const struct view *view, int row) {
  return view->wide ? ((int64_t *)view->offsets)[row] : view->offsets[row];
}

static jlong string_bytes(const struct view *view) {
  if (view->size == 0) {
    return 0;
  }
  rest("the length of strings");
  return offset_at(view, view->size);
}

VIEW_METHOD(jlong, getNativeDataLength) {
  UNUSED;
  const struct view *view = view_of(handle, "getNativeDataLength");
  return view->type == STRING ? string_bytes(view) : (jlong)widths[view->type] * view->size;
}

JNIEXPORT jlong JNICALL Java_ai_rapids_cudf_ColumnView_getDeviceMemorySize(JNIEnv *env, jclass self,
                                                                           jlong handle,
                                                                           jboolean padded) {
  UNUSED;
  const struct view *view = view_of(handle, "getDeviceMemorySize");
  if (padded || view->type != STRING) {
    double_violation("the memory of a column of type %d", view->type);
    return 0;
  }
  jlong offsets = view->offsets == NULL ? 0 : (view->wide ? 8 : 4) * ((jlong)view->size + 1);
  return offsets + string_bytes(view) + (view->valid == NULL ? 0 : (jlong)mask_bytes(view->size));
}

VIEW_METHOD(jlong, getNativeOffsetsAddress) {
  UNUSED;
  const struct view *view = view_of(handle, "getNativeOffsetsAddress");
  return view->size > 0 ? (jlong)(intptr_t)view->offsets : 0;
}

VIEW_METHOD(jlong, getNativeOffsetsLength) {
  UNUSED;
  const struct view *view = view_of(handle, "getNativeOffsetsLength");
  return view->offsets != NULL && view->size > 0 ? 4 * ((jlong)view->size + 1) : 0;
}

VIEW_METHOD(jlong, getNativeValidityAddress) {
  UNUSED;
  return (jlong)(intptr_t)view_of(handle, "getNativeValidityAddress")->valid;
}

VIEW_METHOD(jlong, getNativeValidityLength) {
  UNUSED;
  const struct view *view = view_of(handle, "getNativeValidityLength");
  return view->valid == NULL ? 0 : (jlong)mask_bytes(view->size);
}

VIEW_METHOD(jint, getNativeNumChildren) {
  UNUSED;
  return view_of(handle, "getNativeNumChildren")->child == NULL ? 0 : 1;
}

JNIEXPORT jlong JNICALL Java_ai_rapids_cudf_ColumnView_getChildCvPointer(JNIEnv *env, jclass self,
                                                                         jlong handle, jint index) {
  UNUSED;
  const struct view *view = view_of(handle, "getChildCvPointer");
  if (index != 0 || view->child == NULL) {
    double_violation("child %d of a column of type %d", index, view->type);
    return 0;
  }
  return add((struct handle){.kind = VIEW, .view = cloned(view->child)});
}

VIEW_METHOD(jboolean, hasNonEmptyNulls) {
  UNUSED;
  const struct view *view = view_of(handle, "hasNonEmptyNulls");
  rest("hasNonEmptyNulls");
  for (int row = 0; row < view->size; row++) {
    if (view->offsets != NULL && !is_valid(view, row) &&
        offset_at(view, row) != offset_at(view, row + 1)) {
      return JNI_TRUE;
    }
  }
  return JNI_FALSE;
}

/* ---- columns ---- */

static jlong add_column(struct view view) {
  return add((struct handle){.kind = COLUMN, .view = view});
}

JNIEXPORT jlong JNICALL Java_ai_rapids_cudf_ColumnVector_getNativeColumnView(JNIEnv *env,
                                                                             jclass self,
                                                                             jlong handle) {
  UNUSED;
  enter("getNativeColumnView");
  if (!is_live(handle, COLUMN, "getNativeColumnView")) {
    return 0;
  }
  struct handle *column = (struct handle *)(intptr_t)handle;
  return add((struct handle){.kind = VIEW, .view = cloned(&column->view)});
}

JNIEXPORT jint JNICALL Java_ai_rapids_cudf_ColumnVector_getNativeNullCountColumn(JNIEnv *env,
                                                                                 jclass self,
                                                                                 jlong handle) {
  UNUSED;
  int live = is_live(handle, COLUMN, "getNativeNullCountColumn");
  return live ? ((struct handle *)(intptr_t)handle)->view.nulls : 0;
}

JNIEXPORT jlong JNICALL Java_ai_rapids_cudf_ColumnVector_makeEmptyCudfColumn(JNIEnv *env,
                                                                             jclass self, jint type,
                                                                             jint scale) {
  UNUSED;
  struct view view = {.type = type, .scale = scale};
  if (type == LIST) {
    view.child = calloc(1, sizeof *view.child);
    view.child->type = UINT8;
  }
  return add_column(view);
}

static void free_buffers(const struct view *view) {
  free_later(view->data);
  free_later(view->valid);
  free_later(view->offsets);
  if (view->child != NULL) {
    free_buffers(view->child);
  }
}

JNIEXPORT void JNICALL Java_ai_rapids_cudf_ColumnVector_deleteCudfColumn(JNIEnv *env, jclass self,
                                                                         jlong handle) {
  UNUSED;
  enter("deleteCudfColumn");
  struct handle *found = removed(handle, COLUMN, "deleteCudfColumn");
  if (found != NULL) {
    free_buffers(&found->view);
    drop(&found->view);
    free(found);
  }
}

/* ---- tables ---- */

JNIEXPORT jlong JNICALL Java_ai_rapids_cudf_Table_createCudfTableView(JNIEnv *env, jclass self,
                                                                      jlongArray columns) {
  (void)self;
  struct handle table = {.kind = TABLE, .count = (*env)->GetArrayLength(env, columns)};
  table.columns = calloc(table.count, sizeof *table.columns);
  for (int c = 0; c < table.count; c++) {
    jlong column = 0;
    (*env)->GetLongArrayRegion(env, columns, c, 1, &column);
    table.columns[c] = cloned(view_of(column, "createCudfTableView"));
  }
  return add(table);
}

JNIEXPORT void JNICALL Java_ai_rapids_cudf_Table_deleteCudfTable(JNIEnv *env, jclass self,
                                                                 jlong handle) {
  UNUSED;
  struct handle *found = removed(handle, TABLE, "deleteCudfTable");
  for (int c = 0; found != NULL && c < found->count; c++) {
    drop(&found->columns[c]);
  }
  if (found != NULL) {
    free(found->columns);
    free(found);
  }
}

/* Makes some rows of bytes of varying length; sets the offsets of the result. */
static char *gathered_bytes(const struct view *from, const char *bytes, const int *rows, int count,
                            int32_t *offsets) {
  offsets[0] = 0;
  for (int i = 0; i < count; i++) {
    offsets[i + 1] = offsets[i] + from->offsets[rows[i] + 1] - from->offsets[rows[i]];
  }
  char *gathered = malloc(offsets[count] + 1);
  for (int i = 0; i < count; i++) {
    memcpy(gathered + offsets[i], bytes + from->offsets[rows[i]], offsets[i + 1] - offsets[i]);
  }
  return gathered;
}

/* Takes ownership of the offsets. */
static void *widened(int32_t *offsets, int count) {
  int64_t *wide = malloc(8 * ((size_t)count + 1));
  for (int i = 0; i <= count; i++) {
    wide[i] = offsets[i];
  }
  free(offsets);
  return uploaded(wide, 8 * ((size_t)count + 1));
}

static void gather_values(const struct view *from, const int *rows, int count, struct view *to) {
  if (widths[from->type] > 0) {
    size_t width = widths[from->type];
    char *values = malloc(width * count + 1);
    for (int i = 0; i < count; i++) {
      memcpy(values + i * width, from->data + rows[i] * width, width);
    }
    to->data = uploaded(values, width * count);
    return;
  }
  const char *bytes = from->type == LIST ? from->child->data : from->data;
  int32_t *offsets = malloc(4 * ((size_t)count + 1));
  char *gathered = gathered_bytes(from, bytes, rows, count, offsets);
  int length = offsets[count];
  to->wide = large && from->type == STRING;
  to->offsets = to->wide ? widened(offsets, count) : uploaded(offsets, 4 * ((size_t)count + 1));
  char *there = uploaded(gathered, length);
  if (from->type == LIST) {
    *to->child = (struct view){.type = from->child->type, .size = length, .data = there};
  } else {
    to->data = there;
  }
}

static struct view gathered(const struct view *from, const int *rows, int count) {
  struct view to = {.type = from->type, .scale = from->scale, .size = count};
  if (from->type == LIST) {
    to.child = calloc(1, sizeof *to.child);
    to.child->type = from->child->type;
  }
  if (count == 0) {
    return to;
  }
  gather_values(from, rows, count, &to);
  if (from->valid != NULL) {
    /* The bits after the last row are not zero, so that no code relies on them. */
    uint32_t *bits = malloc(mask_bytes(count));
    memset(bits, -1, mask_bytes(count));
    for (int i = 0; i < count; i++) {
      if (!is_valid(from, rows[i])) {
        bits[i / 32] &= ~(1u << i % 32);
        to.nulls++;
      }
    }
    to.valid = uploaded(bits, mask_bytes(count));
  }
  return to;
}

JNIEXPORT jlongArray JNICALL Java_ai_rapids_cudf_Table_filter(JNIEnv *env, jclass self, jlong input,
                                                              jlong mask_handle) {
  (void)self;
  const struct view *mask = view_of(mask_handle, "filter");
  if (!is_live(input, TABLE, "filter") || mask->type != BOOL8) {
    double_violation("a filter by a column of type %d", mask->type);
    return NULL;
  }
  struct handle *table = (struct handle *)(intptr_t)input;
  rest("filter");
  int *rows = malloc(sizeof *rows * (mask->size + 1));
  int count = 0;
  for (int row = 0; row < mask->size; row++) {
    if (is_valid(mask, row) && mask->data[row]) {
      rows[count++] = row;
    }
  }
  jlongArray result = (*env)->NewLongArray(env, table->count);
  for (int c = 0; c < table->count; c++) {
    jlong column = add_column(gathered(&table->columns[c], rows, count));
    (*env)->SetLongArrayRegion(env, result, c, 1, &column);
  }
  free(rows);
  return result;
}

/* ---- devices and memory ---- */

#define CUDA_METHOD(type, name) \
  JNIEXPORT type JNICALL Java_ai_rapids_cudf_Cuda_##name(JNIEnv *env, jclass self)

CUDA_METHOD(jboolean, isPtdsEnabled) {
  UNUSED;
  return JNI_TRUE;
}

CUDA_METHOD(jint, getDevice) {
  UNUSED;
  if (device >= 0) {
    use_device(device);
  }
  return double_current_device();
}

JNIEXPORT void JNICALL Java_ai_rapids_cudf_Cuda_setDevice(JNIEnv *env, jclass self, jint wanted) {
  UNUSED;
  use_device(wanted);
}

#define RMM_METHOD(type, name, ...) \
  JNIEXPORT type JNICALL Java_ai_rapids_cudf_Rmm_##name(JNIEnv *env, jclass self, ##__VA_ARGS__)

RMM_METHOD(jlong, newCudaMemoryResource) {
  UNUSED;
  return __atomic_add_fetch(&resources, 1, __ATOMIC_SEQ_CST);
}

RMM_METHOD(void, releaseCudaMemoryResource, jlong handle) {
  UNUSED;
  (void)handle;
}

RMM_METHOD(jlong, newTrackingResourceAdaptor, jlong wrapped, jlong alignment) {
  UNUSED;
  (void)wrapped;
  (void)alignment;
  return __atomic_add_fetch(&resources, 1, __ATOMIC_SEQ_CST);
}

RMM_METHOD(void, releaseTrackingResourceAdaptor, jlong handle) {
  UNUSED;
  (void)handle;
}

RMM_METHOD(void, setCurrentDeviceResourceInternal, jlong handle) {
  UNUSED;
  (void)handle;
}

RMM_METHOD(void, initDefaultCudaDevice) {
  UNUSED;
  device = double_current_device();
  if (device < 0) {
    double_violation("cudf's memory is initialised on a thread without a device");
    device = 0;
  }
}

RMM_METHOD(void, cleanupDefaultCudaDevice) {
  UNUSED;
  device = -1;
}
