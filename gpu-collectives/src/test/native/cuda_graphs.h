/*
 * Graphs of the double of libcuda: work on a capturing stream is kept, and runs at each launch of
 * the graph. It reports violations at once where the driver fails much later. These are calls that
 * break a capture, memory and communicators that are freed before their graphs, and launches of
 * destroyed graphs. Part of cuda_double.c.
 */

enum { CAPTURE_UNSUPPORTED = 900, CAPTURE_WRONG_THREAD = 908 };

#define GLOBAL_MODE 0
#define THREAD_LOCAL_MODE 1
#define RELAXED_MODE 2

struct node {
  struct double_work work;
  void *argument;
  int count;
  struct double_range *ranges;
  struct node *next;
};

/* The part that a graph shares with its executable graph. */
struct nodes {
  int device;
  int references;
  int is_broken;
  int mode;
  pthread_t capturer;
  struct node *first;
  struct node **last;
};

struct graph {
  struct nodes *nodes;
  struct graph *next;
};

static struct graph *graphs;
static struct graph *graph_execs;
static __thread int captures;
static __thread int thread_mode = GLOBAL_MODE;

/* Captures that calls of all threads can break, which only programs beside Weft begin. */
static int global_captures;
static int global_allowed;

/* Allows captures in the global mode, which is PyTorch's. */
void cudaDoubleAllowGlobalCaptures(int allowed) { global_allowed = allowed; }

static int break_captures_locked(int of_all_modes);

/* Reports a call that is forbidden during a capture. */
static CUresult check_no_capture(const char *caller) {
  if (captures > 0 && thread_mode != RELAXED_MODE) {
    double_violation("%s on a thread that captures a graph", caller);
    return CAPTURE_UNSUPPORTED;
  }
  if (global_captures > 0 && thread_mode == GLOBAL_MODE) {
    double_violation("%s while a thread captures a graph in the global mode", caller);
    break_captures_locked(0);
    return CAPTURE_UNSUPPORTED;
  }
  return SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  int before = thread_mode;
  thread_mode = *mode;
  *mode = before;
  return SUCCESS;
}

static CUresult check_not_captured(struct nodes *capture, const char *caller) {
  if (capture != NULL) {
    capture->is_broken = 1;
    double_violation("%s on a stream that captures a graph", caller);
    return CAPTURE_UNSUPPORTED;
  }
  return SUCCESS;
}

/* Breaks the captures of the current device; returns how many there are. */
static int break_captures_locked(int of_all_modes) {
  int broken = 0;
  for (struct stream *each = streams; each != NULL; each = each->next) {
    if (each->capture != NULL && current != NULL && each->device == current->device &&
        (of_all_modes || each->capture->mode == GLOBAL_MODE)) {
      each->capture->is_broken = 1;
      broken++;
    }
  }
  return broken;
}

static void refer_locked(struct node *node, int delta) {
  for (int i = 0; i < node->count; i++) {
    struct allocation *found = covering(node->ranges[i].start, node->ranges[i].bytes);
    if (found != NULL) {
      found->graphs += delta;
    }
  }
  if (node->work.refer != NULL) {
    node->work.refer(node->argument, delta);
  }
}

static void capture_locked(struct nodes *nodes, const struct double_work *work, void *argument,
                           const struct double_range *ranges, int count) {
  struct node *node = calloc(1, sizeof *node);
  node->work = *work;
  node->argument = argument;
  node->count = count;
  node->ranges = calloc(count == 0 ? 1 : count, sizeof *ranges);
  memcpy(node->ranges, ranges, count * sizeof *ranges);
  *nodes->last = node;
  nodes->last = &node->next;
  refer_locked(node, 1);
}

static void release_nodes_locked(struct nodes *nodes) {
  if (--nodes->references > 0) {
    return;
  }
  while (nodes->first != NULL) {
    struct node *node = nodes->first;
    nodes->first = node->next;
    refer_locked(node, -1);
    free(node->argument);
    free(node->ranges);
    free(node);
  }
  free(nodes);
}

static struct graph **place_of_graph(struct graph **list, struct graph *graph) {
  while (*list != NULL && *list != graph) {
    list = &(*list)->next;
  }
  return list;
}

static struct graph *add_graph(struct graph **list, struct nodes *nodes, const char *kind) {
  struct graph *made = calloc(1, sizeof *made);
  made->nodes = nodes;
  made->next = *list;
  *list = made;
  double_count(kind, 1);
  return made;
}

static CUresult destroy_graph(struct graph **list, struct graph *graph, const char *caller,
                              const char *kind) {
  pthread_mutex_lock(&lock);
  struct graph **place = place_of_graph(list, graph);
  CUresult result = *place == NULL ? INVALID_VALUE : SUCCESS;
  if (result != SUCCESS) {
    double_violation("%s of a graph that does not exist", caller);
  } else {
    *place = graph->next;
    release_nodes_locked(graph->nodes);
    free(graph);
    double_count(kind, -1);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuStreamBeginCapture_v2(struct stream *stream, int mode) {
  pthread_mutex_lock(&lock);
  CUresult result = check_stream(stream, "cuStreamBeginCapture");
  int allowed = mode == THREAD_LOCAL_MODE || (mode == GLOBAL_MODE && global_allowed);
  if (result == SUCCESS && (!allowed || stream->capture != NULL)) {
    double_violation("cuStreamBeginCapture in mode %d, or on a stream that captures", mode);
    result = INVALID_VALUE;
  }
  if (result == SUCCESS) {
    struct nodes *nodes = calloc(1, sizeof *nodes);
    nodes->device = stream->device;
    nodes->references = 1;
    nodes->mode = mode;
    global_captures += mode == GLOBAL_MODE;
    nodes->capturer = pthread_self();
    nodes->last = &nodes->first;
    stream->capture = nodes;
    captures++;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuStreamEndCapture(struct stream *stream, struct graph **out) {
  pthread_mutex_lock(&lock);
  CUresult result = check_stream(stream, "cuStreamEndCapture");
  struct nodes *nodes = result == SUCCESS ? stream->capture : NULL;
  if (result == SUCCESS && (nodes == NULL || !pthread_equal(nodes->capturer, pthread_self()))) {
    double_violation("cuStreamEndCapture without a beginning, or on another thread");
    result = CAPTURE_WRONG_THREAD;
  } else if (nodes != NULL) {
    stream->capture = NULL;
    captures--;
    global_captures -= nodes->mode == GLOBAL_MODE;
    *out = NULL;
    if (nodes->is_broken) {
      release_nodes_locked(nodes);
      result = CAPTURE_UNSUPPORTED;
    } else {
      *out = add_graph(&graphs, nodes, "graphs");
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuGraphInstantiateWithFlags(struct graph **out, struct graph *graph,
                                     unsigned long long flags) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context("cuGraphInstantiate");
  if (result == SUCCESS && (*place_of_graph(&graphs, graph) == NULL || flags != 0)) {
    double_violation("cuGraphInstantiate of an unknown graph, or with flags %llu", flags);
    result = INVALID_VALUE;
  }
  if (result == SUCCESS) {
    graph->nodes->references++;
    *out = add_graph(&graph_execs, graph->nodes, "graphs to launch");
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuGraphDestroy(struct graph *graph) {
  return destroy_graph(&graphs, graph, "cuGraphDestroy", "graphs");
}

/* Running launches continue: their memory is in use until they end. */
CUresult cuGraphExecDestroy(struct graph *exec) {
  return destroy_graph(&graph_execs, exec, "cuGraphExecDestroy", "graphs to launch");
}

CUresult cuGraphLaunch(struct graph *exec, struct stream *stream) {
  pthread_mutex_lock(&lock);
  CUresult result = check_stream(stream, "cuGraphLaunch");
  if (result == SUCCESS && *place_of_graph(&graph_execs, exec) == NULL) {
    double_violation("cuGraphLaunch of a graph that does not exist");
    result = INVALID_VALUE;
  }
  if (result == SUCCESS && (exec->nodes->device != stream->device || stream->capture != NULL)) {
    double_violation("cuGraphLaunch on device %d of a graph of device %d", stream->device,
                     exec->nodes->device);
    result = INVALID_CONTEXT;
  }
  if (result == SUCCESS) {
    graph_launches++;
    for (struct node *node = exec->nodes->first; node != NULL; node = node->next) {
      size_t bytes = malloc_usable_size(node->argument);
      void *argument = malloc(bytes);
      memcpy(argument, node->argument, bytes);
      enqueue_work_locked(stream, &node->work, argument, node->ranges, node->count);
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* Launches of graphs since the last call. */
int cudaDoubleGraphLaunches(void) {
  return __atomic_exchange_n(&graph_launches, 0, __ATOMIC_SEQ_CST);
}
