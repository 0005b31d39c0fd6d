package io.weft.training;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.BufferOwner;
import io.weft.collectives.buffer.ReduceOp;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.operation.AllReduce;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import io.weft.memory.Memory;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The gradients of a model, averaged over all ranks while the backward pass still runs. They lie in
 * buckets ({@link #gradient} says where), filled from the last registered parameter to the first. A
 * bucket's all-reduce starts, on a lane of its own, as soon as its last gradient is {@link #ready}
 * and the buckets before it have started: so all ranks run the same all-reduces in the same order,
 * whatever order their gradients become ready in.
 *
 * <p>A step is: write every gradient into its place and say {@code ready}, once each; then {@link
 * #await}, after which every place holds the average. The memory is the same in every step, so what
 * is to outlive {@code await} of the next one has to be copied. While an all-reduce runs nobody may
 * touch its bucket.
 *
 * <p>Every step ends: well, or within the communicator's timeout with an error that names the ranks
 * at fault. {@code ready} may be called by any thread; {@code await} and {@code close} by one.
 */
public final class GradientBuckets implements AutoCloseable {
  /** The bucket size that PyTorch's DistributedDataParallel has, a good compromise on networks. */
  public static final long DEFAULT_BUCKET_BYTES = 25L << 20;

  private static final Logger LOG = LoggerFactory.getLogger(GradientBuckets.class);

  private final Communicator communicator;
  private final List<ParameterSpec> parameters;
  private final BucketMemory memory;
  private final Lane lane;
  private final List<TypedBuffer> buckets;
  private final TypedBuffer[] gradients;
  private final int[] bucketOf;
  private final int[] sizes;

  /** The rest is the state of the step that runs. */
  private final BitSet ready = new BitSet();

  private final int[] missing;
  private final List<Event> started = new ArrayList<>();
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

  /**
   * Makes buckets for gradients. Collective: all ranks register the same parameters in the same
   * order.
   *
   * @param parameters in the order of the forward pass, with distinct names
   * @param bucketBytes at most so many bytes to a bucket, unless one gradient is larger; 1 or more
   * @param memory closed by these buckets, also when this fails
   * @throws CollectiveException of kind MISMATCH, on all ranks, when they do not register the same
   */
  public static GradientBuckets open(
      Communicator communicator,
      List<ParameterSpec> parameters,
      long bucketBytes,
      BucketMemory memory) {
    try {
      requireSensible(parameters, bucketBytes);
      LayoutAgreement.check(communicator, parameters, bucketBytes);
      BucketLayout layout = BucketLayout.of(parameters, bucketBytes);
      return new GradientBuckets(communicator, List.copyOf(parameters), layout, memory);
    } catch (RuntimeException | Error e) { // An error is what a lack of direct memory ends in.
      memory.close();
      throw e;
    }
  }

  private static void requireSensible(List<ParameterSpec> parameters, long bucketBytes) {
    if (bucketBytes < 1) {
      throw new IllegalArgumentException("a bucket of " + bucketBytes + " bytes");
    }
    if (parameters.isEmpty()) {
      throw new IllegalArgumentException("no parameters to average the gradients of");
    }
    long names = parameters.stream().map(ParameterSpec::name).distinct().count();
    if (names < parameters.size()) {
      throw new IllegalArgumentException("two parameters of the same name: " + parameters);
    }
  }

  /** What was registered. */
  public List<ParameterSpec> parameters() {
    return parameters;
  }

  /** All-reduces in a step. */
  public int buckets() {
    return buckets.size();
  }

  /** Which all-reduce of a step takes this gradient, from 0. */
  public int bucketOf(int parameter) {
    return bucketOf[parameter];
  }

  /** Where a parameter's gradient lies, zeros at first; the same place in every step. */
  public TypedBuffer gradient(int parameter) {
    return gradients[parameter];
  }

  /**
   * The gradient of a parameter is complete on this rank.
   *
   * @throws IllegalStateException when it was already in this step
   * @throws CollectiveException when the communicator is broken
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
    while (started.size() < buckets.size() && missing[started.size()] == 0) {
      start(buckets.get(started.size()));
    }
  }

  private void start(TypedBuffer bucket) {
    started.add(communicator.submit(new AllReduce(bucket, bucket, ReduceOp.AVERAGE), lane));
  }

  /** A parameter took no part in this step on this rank: its gradient is zero, and ready. */
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

  /** The end of a bucket's all-reduce in this step; nothing before it has started. */
  public synchronized List<Event> started() {
    return List.copyOf(started);
  }

  /**
   * Waits until all gradients are averages, and begins the next step. A gradient that was never
   * ready is an error on all ranks: this one breaks the communicator with its name rather than let
   * the others wait.
   *
   * @throws IllegalStateException naming the gradients that are not ready
   * @throws io.weft.device.EventFailedException when an all-reduce failed
   * @throws EventTimeoutException when the deadline passed first; can be called again
   */
  public void await(Deadline deadline) {
    for (Event event : complete()) {
      event.await(deadline);
    }
    synchronized (this) {
      ready.clear();
      started.clear();
      System.arraycopy(sizes, 0, missing, 0, sizes.length);
    }
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
              + "; a parameter without a part in the step needs readyUnused");
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
   * Waits for all-reduces that run, at most the communicator's timeout, and frees the buckets. Not
   * collective; closing in the middle of a step leaves the other ranks to their timeout, so close
   * the communicator, too.
   */
  @Override
  public void close() {
    List<Event> running;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      running = List.copyOf(started);
    }
    lane.close();
    Deadline deadline = Deadline.after(communicator.timeout());
    for (Event event : running) {
      if (!ended(event, deadline)) {
        LOG.warn("{} still runs: its buckets are left to the collector", event.what());
        return;
      }
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
}
