/*
 * Multicast of the double of libcuda. An object is a file without a name that records the bound
 * memory of each device. Its descriptor goes to other processes as the real one does. A mapped
 * address has no memory: only double_store_to_all, the instruction of the kernels, finds the bound
 * memory from there. Part of cuda_double.c.
 */
#include <stdatomic.h>

/* Builds a driver older than multicast. */
#ifdef WEFT_DOUBLE_WITHOUT_MULTICAST
#define MULTICAST_API static __attribute__((unused))
#else
#define MULTICAST_API
#endif

#define MULTICAST_GRANULARITY (2 * GRANULARITY)
#define MAX_BINDINGS 4

/* Memory of one device; other processes open it through its owner's file. */
struct binding {
  atomic_int bound;
  int pid;
  int file;
  unsigned long inode;
  size_t offset; /* offset in the object */
  size_t memory_offset;
  size_t bytes;
};

/* State that all processes share. */
struct team {
  unsigned magic;
  int devices;
  size_t bytes;
  atomic_uint added; /* a bit for each device */
  struct binding bindings[DEVICES][MAX_BINDINGS];
};

struct multicast_properties {
  unsigned devices;
  size_t bytes;
  unsigned long long handle_types;
  unsigned long long flags;
};

_Static_assert(sizeof(struct multicast_properties) == 32, "as CUmulticastObjectProp");

/* Bound memory, as it is mapped in this process. */
struct view {
  unsigned long inode;
  size_t memory_offset;
  char *start;
  size_t bytes;
};

struct multicast {
  int file;
  struct team *team;
  int references;
  struct view views[DEVICES][MAX_BINDINGS];
  struct physical *bound[DEVICES][MAX_BINDINGS]; /* bound by this process */
  struct multicast *next;
};

#define TEAM_MAGIC 0x7ea3u

static struct multicast *multicasts;
static int multicast_devices = 0x55;
static int compute_capability = 9;
static int memory_descriptors = 1;
static int binding_faults;
static int unbinding_faults;

/*
 * Sets a bit for each device with multicast; initially every second device has it, as with a
 * switch.
 */
void cudaDoubleMulticast(int devices) { multicast_devices = devices; }

/* Sets the major number of the compute capability of all devices. */
void cudaDoubleComputeCapability(int major) { compute_capability = major; }

/* Makes the next bindings fail for lack of resources. */
void cudaDoubleFailBindings(int bindings) { binding_faults = bindings; }

/* Makes the next unbindings fail. */
void cudaDoubleFailUnbindings(int bindings) { unbinding_faults = bindings; }

/* Sets whether memory can be exported as a file descriptor. */
void cudaDoubleDescriptors(int offered) { memory_descriptors = offered; }

static struct multicast **place_of_multicast(const struct multicast *multicast) {
  struct multicast **each = &multicasts;
  while (*each != NULL && *each != multicast) {
    each = &(*each)->next;
  }
  return each;
}

static int is_multicast(const void *handle) { return *place_of_multicast(handle) != NULL; }

static struct multicast *add_multicast_locked(int file) {
  struct team *team = mmap(NULL, sizeof *team, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (team == MAP_FAILED) {
    give_up("the CUDA double cannot map a multicast object");
  }
  struct multicast *made = calloc(1, sizeof *made);
  made->file = file;
  made->team = team;
  made->references = 1;
  made->next = multicasts;
  multicasts = made;
  double_count("multicast objects", 1);
  return made;
}

static CUresult check_multicast_properties(const struct multicast_properties *properties,
                                           const char *caller) {
  if (properties->devices < 2 || properties->devices > DEVICES || properties->bytes == 0 ||
      properties->handle_types != 1 || properties->flags != 0) {
    double_violation("%s of %zu bytes for %u devices with handles %llu", caller, properties->bytes,
                     properties->devices, properties->handle_types);
    return INVALID_VALUE;
  }
  return SUCCESS;
}

MULTICAST_API CUresult cuMulticastGetGranularity(size_t *bytes, const struct multicast_properties *properties,
                                   int option) {
  (void)option;
  *bytes = MULTICAST_GRANULARITY;
  return check_multicast_properties(properties, "cuMulticastGetGranularity");
}

static CUresult check_granules(size_t bytes, const char *caller) {
  if (bytes % MULTICAST_GRANULARITY != 0) {
    double_violation("%s of %zu bytes, which are not whole granules of multicast", caller, bytes);
    return INVALID_VALUE;
  }
  return SUCCESS;
}

MULTICAST_API CUresult cuMulticastCreate(struct multicast **out, const struct multicast_properties *properties) {
  pthread_mutex_lock(&lock);
  CUresult result = check_multicast_properties(properties, "cuMulticastCreate");
  if (result == SUCCESS) {
    result = check_granules(properties->bytes, "cuMulticastCreate");
  }
  if (result == SUCCESS) {
    *out = add_multicast_locked(make_file(sizeof(struct team)));
    (*out)->team->magic = TEAM_MAGIC;
    (*out)->team->devices = (int)properties->devices;
    (*out)->team->bytes = properties->bytes;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static CUresult check_object(struct multicast *multicast, const char *caller) {
  if (!is_multicast(multicast)) {
    double_violation("%s of a multicast object that does not exist", caller);
    return INVALID_VALUE;
  }
  return SUCCESS;
}

MULTICAST_API CUresult cuMulticastAddDevice(struct multicast *multicast, int device) {
  pthread_mutex_lock(&lock);
  CUresult result = check_object(multicast, "cuMulticastAddDevice");
  if (result == SUCCESS && (multicast_devices >> device & 1) == 0) {
    double_violation("cuMulticastAddDevice of device %d, which has no multicast", device);
    result = NOT_SUPPORTED;
  }
  if (result == SUCCESS) {
    unsigned before = atomic_fetch_or(&multicast->team->added, 1u << device);
    if ((before >> device & 1) != 0 || __builtin_popcount(before) == multicast->team->devices) {
      double_violation("cuMulticastAddDevice of device %d, which was added, or too many", device);
      result = INVALID_DEVICE;
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/*
 * Reports an incomplete object: the driver would wait until all devices are added, so the code
 * under test would hang.
 */
static CUresult check_complete(struct multicast *multicast, const char *caller) {
  int added = __builtin_popcount(atomic_load(&multicast->team->added));
  if (added != multicast->team->devices) {
    double_violation("%s when %d of %d devices have been added", caller, added,
                     multicast->team->devices);
    return ILLEGAL_STATE;
  }
  return SUCCESS;
}

static CUresult check_bindable(struct multicast *multicast, size_t offset, struct allocation *found,
                               const char *start, size_t bytes) {
  if (found == NULL || found->kind != VIRTUAL || found->physical->handle_types != 1) {
    double_violation("cuMulticastBindAddr of %zu bytes that are not shareable memory", bytes);
    return INVALID_VALUE;
  }
  if ((atomic_load(&multicast->team->added) >> found->device & 1) == 0 ||
      offset + bytes > multicast->team->bytes || bytes == 0 ||
      (size_t)start % MULTICAST_GRANULARITY != 0 || offset % MULTICAST_GRANULARITY != 0) {
    double_violation("cuMulticastBindAddr of %zu bytes of device %d at %zu", bytes, found->device,
                     offset);
    return INVALID_VALUE;
  }
  return check_granules(bytes, "cuMulticastBindAddr");
}

static CUresult bind_locked(struct multicast *multicast, size_t offset, struct allocation *found,
                            const char *start, size_t bytes) {
  struct binding *bindings = multicast->team->bindings[found->device];
  int place = -1;
  for (int i = 0; i < MAX_BINDINGS; i++) {
    if (!atomic_load(&bindings[i].bound)) {
      place = place < 0 ? i : place;
    } else if (offset < bindings[i].offset + bindings[i].bytes &&
               bindings[i].offset < offset + bytes) {
      double_violation("cuMulticastBindAddr of device %d where it has bound memory", found->device);
      return INVALID_VALUE;
    }
  }
  if (place < 0) {
    return OUT_OF_MEMORY;
  }
  struct stat about;
  fstat(found->physical->file, &about);
  struct binding *made = &bindings[place];
  made->pid = getpid();
  made->file = found->physical->file;
  made->inode = about.st_ino;
  made->offset = offset;
  made->memory_offset = (size_t)(start - found->start);
  made->bytes = bytes;
  atomic_store(&made->bound, 1);
  multicast->bound[found->device][place] = found->physical;
  found->physical->references++;
  double_count("multicast bindings", 1);
  return SUCCESS;
}

MULTICAST_API CUresult cuMulticastBindAddr(struct multicast *multicast, size_t offset, const char *start,
                             size_t bytes, unsigned long long flags) {
  pthread_mutex_lock(&lock);
  CUresult result = check_object(multicast, "cuMulticastBindAddr");
  if (result == SUCCESS) {
    result = flags != 0 ? INVALID_VALUE : check_complete(multicast, "cuMulticastBindAddr");
  }
  struct allocation *found = covering(start, bytes);
  if (result == SUCCESS) {
    result = check_bindable(multicast, offset, found, start, bytes);
  }
  if (result == SUCCESS && binding_faults > 0) {
    binding_faults--;
    result = OUT_OF_MEMORY;
  }
  if (result == SUCCESS) {
    result = bind_locked(multicast, offset, found, start, bytes);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static void unbind_locked(struct multicast *multicast, int device, int place) {
  atomic_store(&multicast->team->bindings[device][place].bound, 0);
  release_physical_locked(multicast->bound[device][place]);
  multicast->bound[device][place] = NULL;
  double_count("multicast bindings", -1);
}

MULTICAST_API CUresult cuMulticastUnbind(struct multicast *multicast, int device, size_t offset, size_t bytes) {
  pthread_mutex_lock(&lock);
  CUresult result = check_object(multicast, "cuMulticastUnbind");
  int found = 0;
  if (result == SUCCESS && unbinding_faults > 0) {
    unbinding_faults--;
    pthread_mutex_unlock(&lock);
    return ILLEGAL_STATE;
  }
  for (int i = 0; result == SUCCESS && i < MAX_BINDINGS; i++) {
    struct binding *each = &multicast->team->bindings[device][i];
    if (multicast->bound[device][i] != NULL && each->offset == offset && each->bytes == bytes) {
      unbind_locked(multicast, device, i);
      found = 1;
    }
  }
  if (result == SUCCESS && !found) {
    double_violation("cuMulticastUnbind of %zu bytes of device %d that it did not bind", bytes,
                     device);
    result = INVALID_VALUE;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* Notes unmapped memory to which kernels of other processes may still write. */
static void note_unmapped(const struct physical *physical) {
  for (struct multicast *each = multicasts; each != NULL; each = each->next) {
    for (int i = 0; i < MAX_BINDINGS; i++) {
      if (each->bound[physical->device][i] == physical) {
        double_violation("cuMemUnmap of %zu bytes that are bound to a multicast object",
                         physical->bytes);
      }
    }
  }
}

/* ---- handles of other processes ---- */

CUresult cuMemExportToShareableHandle(int *descriptor, struct multicast *multicast, int type,
                                      unsigned long long flags) {
  pthread_mutex_lock(&lock);
  CUresult result = check_object(multicast, "cuMemExportToShareableHandle");
  if (result == SUCCESS && (type != 1 || flags != 0)) {
    double_violation("cuMemExportToShareableHandle of type %d", type);
    result = INVALID_VALUE;
  }
  if (result == SUCCESS) {
    *descriptor = fcntl(multicast->file, F_DUPFD_CLOEXEC, 0);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuMemImportFromShareableHandle(struct multicast **out, long descriptor, int type) {
  pthread_mutex_lock(&lock);
  int file = fcntl((int)descriptor, F_DUPFD_CLOEXEC, 0);
  struct stat about;
  CUresult result = SUCCESS;
  if (type != 1 || file < 0 || fstat(file, &about) != 0 ||
      about.st_size != (off_t)sizeof(struct team)) {
    double_violation("cuMemImportFromShareableHandle of descriptor %ld, which is not a handle",
                     descriptor);
    if (file >= 0) {
      close(file);
    }
    result = INVALID_VALUE;
  } else {
    *out = add_multicast_locked(file);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* ---- mappings ---- */

static CUresult map_multicast_locked(char *start, size_t bytes, struct multicast *multicast) {
  CUresult result = check_complete(multicast, "cuMemMap");
  if (result == SUCCESS && (bytes != multicast->team->bytes || current == NULL ||
                            (size_t)start % MULTICAST_GRANULARITY != 0)) {
    double_violation("cuMemMap of %zu bytes of a multicast object of %zu", bytes,
                     multicast->team->bytes);
    result = INVALID_VALUE;
  }
  if (result == SUCCESS) {
    struct allocation *made = add_allocation(start, bytes, current->device, MULTICAST);
    made->multicast = multicast;
    made->accessible = 0;
    multicast->references++;
    double_count("mappings", 1);
  }
  return result;
}

static void release_multicast_locked(struct multicast *multicast) {
  if (--multicast->references > 0) {
    return;
  }
  for (int device = 0; device < DEVICES; device++) {
    for (int i = 0; i < MAX_BINDINGS; i++) {
      if (multicast->bound[device][i] != NULL) {
        double_violation("a multicast object ends while device %d has memory bound to it", device);
        unbind_locked(multicast, device, i);
      }
      if (multicast->views[device][i].start != NULL) {
        munmap(multicast->views[device][i].start, multicast->views[device][i].bytes);
      }
    }
  }
  *place_of_multicast(multicast) = multicast->next;
  munmap(multicast->team, sizeof *multicast->team);
  close(multicast->file);
  free(multicast);
  double_count("multicast objects", -1);
}
