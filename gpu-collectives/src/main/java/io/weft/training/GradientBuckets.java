package io.weft.training;

import io.weft.collectives.AllReduce;
import io.weft.collectives.BufferOwner;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.Recording;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Averages the gradients of a model over all ranks while the backward pass still runs. The
 * gradients are in buckets ({@link #gradient} returns their buffers), filled from the last
 * registered parameter to the first. A bucket's all-reduce starts, on its own lane, as soon as all
 * its gradients are {@link #ready} and the buckets before it have started. So all ranks run the
 * same all-reduces in the same order, even if their gradients become ready in different orders.
 *
 * <p>In each step, write every gradient into its buffer and call {@code ready} once for each; then
 * call {@link #await}. After that every buffer holds the average. The memory is the same in every
 * step, so copy what must survive the next {@code await}. No thread may use a bucket while its
 * all-reduce runs.
 *
 * <p>Every step ends: successfully, or within the communicator's timeout with an error that names
 * the ranks at fault. Any thread may call {@code ready}; one thread calls {@code await} and {@code
 * close}.
 */
public final class GradientBuckets implements AutoCloseable {
  /** The bucket size of PyTorch's DistributedDataParallel, a good compromise on networks. */
  public static final long DEFAULT_BUCKET_BYTES = 25L << 20;

  /** Recorded all-reduces up to this size run as one, see {@link Communicator#record}. */
  private static final long SMALL_BYTES = 32 << 10;

  private static final Logger LOG = LoggerFactory.getLogger(GradientBuckets.class);

  private final Communicator communicator;
  private final List<ParameterSpec> parameters;
  private final BucketMemory memory;
  private final Lane lane;
  private final List<TypedBuffer> buckets;
  private final TypedBuffer[] gradients;
  private final int[] bucketOf;
  private final int[] sizes;

  /** The fields below are the state of the current step. */
  private final BitSet ready = new BitSet();

  private final int[] missing;
  private final List<Event> started = new ArrayList<>();

  /** The end of every step; null without {@link #recordEnd}. */
  private Recording end;

  /** Whether the last bucket is averaged by {@link #end}. */
  private boolean lastInEnd;

  /** The replay of {@link #end} in this step; null before it starts. */
  private Event replay;

  private boolean closed;

  private GradientBuckets(
      Communicator communicator,
      List<ParameterSpec> parameters,
      BucketLayout layout,
      BucketMemory memory) {
    this.communicator = communicator;
    this.parameters = parameters;
    this.memory = memory;
    this.gradients = new TypedBuffer[parameters.size()];
    this.bucketOf = new int[parameters.size()];
    this.buckets = new ArrayList<>();
    for (BucketLayout.Bucket bucket : layout.buckets()) {
      allocate(bucket);
    }
    this.sizes = layout.buckets().stream().mapToInt(bucket -> bucket.places().size()).toArray();
    this.missing = sizes.clone();
    this.lane = HostLane.open("gradients-" + communicator.rank(), communicator.timeout());
  }

  private void allocate(BucketLayout.Bucket bucket) {
    BufferOwner owner = memory.allocate(bucket.count() * bucket.type().bytes());
    TypedBuffer all = TypedBuffer.of(owner, 0, bucket.type(), bucket.count());
    Memory.setMemory(all.address(), all.bytes(), (byte) 0);
    for (BucketLayout.Place place : bucket.places()) {
      gradients[place.parameter()] = all.slice(place.first(), place.count());
      bucketOf[place.parameter()] = buckets.size();
    }
    buckets.add(all);
  }

  /** As the other method, in symmetric buffers of the communicator. */
  public static GradientBuckets open(
      Communicator communicator, List<ParameterSpec> parameters, long bucketBytes) {
    return open(communicator, parameters, bucketBytes, BucketMemory.of(communicator));
  }

  /**
   * Creates buckets for gradients. Collective: all ranks register the same parameters in the same
   * order.
   *
   * @param parameters in the order of the forward pass, with distinct names
   * @param bucketBytes the limit of a bucket unless one gradient is larger; 1 or more
   * @param memory closed by these buckets, even if this method fails
   * @throws CollectiveException of kind MISMATCH, on all ranks, if they do not register the same
   */
  public static GradientBuckets open(
      Communicator communicator,
      List<ParameterSpec> parameters,
      long bucketBytes,
      BucketMemory memory) {
    try {
      requireSensible(parameters, bucketBytes);
      LayoutCheck.check(communicator, parameters, bucketBytes);
      BucketLayout layout = BucketLayout.of(parameters, bucketBytes);
      return new GradientBuckets(communicator, List.copyOf(parameters), layout, memory);
    } catch (RuntimeException | Error e) { // A lack of direct memory is an Error.
      memory.close();
      throw e;
    }
  }

  private static void requireSensible(List<ParameterSpec> parameters, long bucketBytes) {
    if (bucketBytes < 1) {
      throw new IllegalArgumentException("a bucket of " + bucketBytes + " bytes");
    }
    if (parameters.isEmpty()) {
      throw new IllegalArgumentException("no parameters whose gradients could be averaged");
    }
    long names = parameters.stream().map(ParameterSpec::name).distinct().count();
    if (names < parameters.size()) {
      throw new IllegalArgumentException("two parameters of the same name: " + parameters);
    }
  }

  /**
   * Records averages of more buffers as the end of a step. From now on {@link #await} replays them
   * in one submission. If the last bucket is small and of their type, it is averaged together with
   * them, as one all-reduce; otherwise it starts as soon as it is ready. Collective; before the
   * first step.
   *
   * @param more at least one; written before each {@code await}, averages after it; stay allocated
   *     until close. The gradients' type costs least.
   */
  public void recordEnd(List<TypedBuffer> more) {
    if (more.isEmpty()) {
      throw new IllegalArgumentException("no buffers that end a step");
    }
    TypedBuffer last = buckets.get(buckets.size() - 1);
    long bytes = last.bytes() + more.stream().mapToLong(TypedBuffer::bytes).sum();
    lastInEnd =
        bytes <= SMALL_BYTES && more.stream().allMatch(buffer -> buffer.type() == last.type());
    end =
        communicator.record(
            recorder -> {
              if (lastInEnd) {
                recorder.allReduce(last, ReduceOp.AVERAGE);
              }
              more.forEach(buffer -> recorder.allReduce(buffer, ReduceOp.AVERAGE));
            });
  }

  /** The registered parameters. */
  public List<ParameterSpec> parameters() {
    return parameters;
  }

  /** The number of all-reduces in a step. */
  public int buckets() {
    return buckets.size();
  }

  /** The index of the all-reduce that averages this gradient, from 0. */
  public int bucketOf(int parameter) {
    return bucketOf[parameter];
  }

  /** The buffer of a parameter's gradient, zeros at first; the same in every step. */
  public TypedBuffer gradient(int parameter) {
    return gradients[parameter];
  }

  /**
   * Reports that the gradient of a parameter is complete on this rank.
   *
   * @throws IllegalStateException if it was already complete in this step
   * @throws CollectiveException if the communicator is broken
   */
  public synchronized void ready(int parameter) {
    Objects.checkIndex(parameter, gradients.length);
    requireOpen();
    if (ready.get(parameter)) {
      throw new IllegalStateException(
          "the gradient of "
              + parameters.get(parameter)
              + " is ready for the second time in a"
              + " step on rank "
              + communicator.rank());
    }
    ready.set(parameter);
    missing[bucketOf[parameter]]--;
    int own = buckets.size() - (lastInEnd ? 1 : 0);
    while (started.size() < own && missing[started.size()] == 0) {
      start(buckets.get(started.size()));
    }
  }

  private void start(TypedBuffer bucket) {
    started.add(communicator.submit(new AllReduce(bucket, bucket, ReduceOp.AVERAGE), lane));
  }

  /**
   * Reports that a parameter took no part in this step on this rank: its gradient is zero and
   * ready.
   */
  public void readyUnused(int parameter) {
    TypedBuffer gradient = gradients[parameter];
    synchronized (this) {
      requireOpen();
      if (!ready.get(parameter)) {
        Memory.setMemory(gradient.address(), gradient.bytes(), (byte) 0);
      }
      ready(parameter);
    }
  }

  /** The events that end with the all-reduces started in this step, in bucket order. */
  public synchronized List<Event> started() {
    return List.copyOf(started);
  }

  /**
   * Waits until all gradients are averages, and begins the next step. A gradient that was never
   * ready is an error on all ranks: this rank breaks the communicator with the gradient's name, so
   * the others do not wait.
   *
   * @throws IllegalStateException naming the gradients that are not ready
   * @throws io.weft.device.EventFailedException if an all-reduce failed
   * @throws EventTimeoutException if the deadline passed first; the call can be repeated, and is
   *     before other operations on the communicator
   */
  public void await(Deadline deadline) {
    for (Event event : complete()) {
      event.await(deadline);
    }
    awaitEnd(deadline);
    synchronized (this) {
      ready.clear();
      started.clear();
      System.arraycopy(sizes, 0, missing, 0, sizes.length);
    }
  }

  private void awaitEnd(Deadline deadline) {
    if (end == null) {
      return;
    }
    if (replay == null) {
      replay = lane.submit("the end of a step", end::replay);
    }
    replay.await(deadline);
    replay = null;
  }

  private synchronized List<Event> complete() {
    requireOpen();
    if (ready.cardinality() < gradients.length) {
      String late = unready();
      communicator.abort("rank " + communicator.rank() + " has no gradient of " + late);
      throw new IllegalStateException(
          "the step ended on rank "
              + communicator.rank()
              + " without the gradient of "
              + late
              + "; call readyUnused for a parameter that takes no part in the step");
    }
    return List.copyOf(started);
  }

  private String unready() {
    List<String> names = new ArrayList<>();
    for (int i = ready.nextClearBit(0); i < gradients.length; i = ready.nextClearBit(i + 1)) {
      names.add(parameters.get(i).name());
    }
    return String.join(", ", names);
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the gradient buckets of " + communicator + " are closed");
    }
  }

  /**
   * Waits for running all-reduces, at most the communicator's timeout, and frees the buckets. Not
   * collective. A close in the middle of a step leaves the other ranks to their timeout, so close
   * the communicator too.
   */
  @Override
  public void close() {
    List<Event> running;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      running = new ArrayList<>(started);
    }
    if (replay != null) {
      running.add(replay);
    }
    lane.close();
    Deadline deadline = Deadline.after(communicator.timeout());
    for (Event event : running) {
      if (!ended(event, deadline)) {
        LOG.warn("{} still runs: its buckets are left to the garbage collector", event.what());
        return;
      }
    }
    if (end != null) {
      end.close();
    }
    memory.close();
  }

  private static boolean ended(Event event, Deadline deadline) {
    try {
      event.await(deadline);
      return true;
    } catch (EventTimeoutException e) {
      return false;
    } catch (RuntimeException failed) {
      LOG.debug("{} had failed before the close", event.what(), failed);
      return true;
    }
  }

  /**
   * Checks that all ranks register the same gradients in the same order. Two ranks with buckets of
   * the same size but different parameters would average unrelated values, and no all-reduce could
   * detect it. Every rank receives the messages of all ranks, so all fail alike.
   */
  static final class LayoutCheck {
    private static final long FNV_BASIS = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;

    private LayoutCheck() {}

    /**
     * Checks the ranks. Collective.
     *
     * @throws CollectiveException of kind MISMATCH naming the ranks that differ from rank 0, and
     *     the first parameter in which they do
     */
    static void check(Communicator communicator, List<ParameterSpec> parameters, long bucketBytes) {
      long[][] heads = gather(communicator, new long[] {parameters.size(), bucketBytes});
      compare(heads, 0, () -> "has " + parameters.size() + " gradients");
      compare(heads, 1, () -> "has buckets of " + bucketBytes + " bytes");
      long[][] prints =
          gather(communicator, parameters.stream().mapToLong(LayoutCheck::print).toArray());
      for (int i = 0; i < parameters.size(); i++) {
        int parameter = i;
        compare(prints, i, () -> "has as gradient " + parameter + ": " + parameters.get(parameter));
      }
    }

    private static void compare(long[][] said, int index, Supplier<String> here) {
      List<Integer> others = new ArrayList<>();
      for (int rank = 1; rank < said.length; rank++) {
        if (said[rank][index] != said[0][index]) {
          others.add(rank);
        }
      }
      if (!others.isEmpty()) {
        throw new CollectiveException(
            CollectiveException.Kind.MISMATCH,
            others,
            CollectiveException.name(others)
                + " registered other gradients than rank 0; this rank "
                + here.get());
      }
    }

    private static long[][] gather(Communicator communicator, long[] mine) {
      int n = mine.length;
      try (Tensor send = Tensor.allocate(TensorType.of(DataType.INT64, n));
          Tensor all = Tensor.allocate(TensorType.of(DataType.INT64, communicator.nranks(), n))) {
        for (int i = 0; i < n; i++) {
          Memory.putLong(send.address() + 8L * i, mine[i]);
        }
        TypedBuffer received = all.buffer();
        communicator.allGather(send.buffer(), received);
        long[][] result = new long[communicator.nranks()][n];
        for (int rank = 0; rank < result.length; rank++) {
          for (int i = 0; i < n; i++) {
            result[rank][i] = Memory.getLong(received.address() + 8L * (rank * (long) n + i));
          }
        }
        return result;
      }
    }

    /** FNV-1a hash of {@link ParameterSpec#toString}, which covers all its fields. */
    private static long print(ParameterSpec parameter) {
      long hash = FNV_BASIS;
      for (byte next : parameter.toString().getBytes(StandardCharsets.UTF_8)) {
        hash = (hash ^ next) * FNV_PRIME;
      }
      return hash;
    }
  }

  /**
   * The place of each gradient in the buckets. Buckets take gradients in reverse order of
   * registration, because the backward pass reaches the last layers first. A bucket is closed if
   * the next gradient does not fit or has another type. A gradient larger than a bucket gets its
   * own. The scheme is that of PyTorch's DistributedDataParallel (Li et al., VLDB 2020).
   *
   * @param buckets in the order of their all-reduces
   */
  record BucketLayout(List<Bucket> buckets) {
    /** Gradients begin at multiples of a cache line from the start of the bucket. */
    static final int ALIGNMENT = 64;

    /**
     * The place of one gradient.
     *
     * @param parameter index in order of registration
     * @param first its first element within the bucket
     */
    record Place(int parameter, long first, long count) {}

    /**
     * The bucket of one all-reduce.
     *
     * @param count elements, including gaps between gradients
     */
    record Bucket(DataType type, List<Place> places, long count) {}

    /**
     * Lays out gradients.
     *
     * @param bucketBytes 1 or more
     */
    static BucketLayout of(List<ParameterSpec> parameters, long bucketBytes) {
      List<Bucket> buckets = new ArrayList<>();
      List<Place> places = new ArrayList<>();
      DataType type = null;
      long count = 0;
      for (int i = parameters.size() - 1; i >= 0; i--) {
        ParameterSpec parameter = parameters.get(i);
        boolean fits = (count + parameter.count()) * parameter.type().bytes() <= bucketBytes;
        if (!places.isEmpty() && (parameter.type() != type || !fits)) {
          buckets.add(new Bucket(type, List.copyOf(places), count));
          places.clear();
          count = 0;
        }
        type = parameter.type();
        places.add(new Place(i, count, parameter.count()));
        count = aligned(count + parameter.count(), type);
      }
      if (!places.isEmpty()) {
        buckets.add(new Bucket(type, List.copyOf(places), count));
      }
      return new BucketLayout(List.copyOf(buckets));
    }

    private static long aligned(long count, DataType type) {
      long step = ALIGNMENT / type.bytes();
      return (count + step - 1) / step * step;
    }
  }
}
