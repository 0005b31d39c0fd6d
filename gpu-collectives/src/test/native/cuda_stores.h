/*
 * Writes of the double's kernels to all memory that is bound to a multicast object. Memory of other
 * processes is mapped at the first write. Part of cuda_double.c.
 */

/* The bound memory of a device, or NULL if its process has ended. */
static char *view_of(struct multicast *multicast, int device, int place) {
  struct binding *binding = &multicast->team->bindings[device][place];
  struct view *view = &multicast->views[device][place];
  if (view->start != NULL && view->inode == binding->inode &&
      view->memory_offset == binding->memory_offset) {
    return view->start;
  }
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", binding->pid, binding->file);
  int file = open(path, O_RDWR | O_CLOEXEC);
  struct stat about;
  if (file < 0 || fstat(file, &about) != 0 || about.st_ino != binding->inode) {
    if (kill(binding->pid, 0) == 0) {
      double_violation("memory of device %d that is bound does not exist", device);
    }
    if (file >= 0) {
      close(file);
    }
    return NULL;
  }
  if (view->start != NULL) {
    munmap(view->start, view->bytes);
  }
  view->bytes = binding->bytes;
  view->start = mmap(NULL, view->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                     (off_t)binding->memory_offset);
  close(file);
  if (view->start == MAP_FAILED) {
    give_up("the CUDA double cannot map memory that is bound");
  }
  view->inode = binding->inode;
  view->memory_offset = binding->memory_offset;
  return view->start;
}

static void store_to_device(struct multicast *multicast, int device, size_t at, const void *value,
                            int bytes, const char *kernel) {
  for (int i = 0; i < MAX_BINDINGS; i++) {
    struct binding *each = &multicast->team->bindings[device][i];
    if (atomic_load(&each->bound) && at >= each->offset && at < each->offset + each->bytes) {
      char *view = view_of(multicast, device, i);
      if (view != NULL) {
        memcpy(view + at - each->offset, value, bytes);
      }
      return;
    }
  }
  double_violation("%s writes where device %d has bound nothing", kernel, device);
}

/* Notes that writes of this thread are not visible at other addresses yet. */
static void note_unsettled(void);

/* The multicast store; on a real device it is undefined for any other address. */
void double_store_to_all(const char *kernel, void *address, const void *value, int bytes) {
  note_unsettled();
  pthread_mutex_lock(&lock);
  struct allocation *found = covering(address, bytes);
  if (found == NULL || found->kind != MULTICAST || (size_t)address % bytes != 0) {
    double_violation("%s writes to an address that is not of multicast", kernel);
  } else if (found->device != running_device || !found->accessible) {
    double_violation("%s of device %d writes to an address of multicast of device %d", kernel,
                     running_device, found->device);
  } else {
    size_t at = (size_t)((char *)address - found->start);
    unsigned added = atomic_load(&found->multicast->team->added);
    for (int device = 0; device < DEVICES; device++) {
      if ((added >> device & 1) != 0) {
        store_to_device(found->multicast, device, at, value, bytes, kernel);
      }
    }
  }
  pthread_mutex_unlock(&lock);
}
