package io.weft.collectives;

import io.weft.device.Event;
import io.weft.device.Lane;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * One rank's end of a group of ranks that compute together. All ranks run the same collectives in
 * the same order. A disagreement between ranks fails on all of them; it never gives wrong data.
 *
 * <p>Operations of one communicator run one after the other, in the order in which they were run or
 * submitted, on any thread or lane. In this sense it is thread-safe. Every operation ends within
 * {@link #timeout()}, and an error names the ranks at fault. After an error the communicator is
 * broken; only {@link #close()} is useful then.
 *
 * <p>Buffers must stay allocated until an operation has ended. After a failure a slower rank never
 * touches them: other ranks reach only symmetric memory, which outlives its owner's end.
 */
public interface Communicator extends AutoCloseable {
  int rank();

  int nranks();

  UniqueId id();

  /** How long one operation may take, including waits. */
  Duration timeout();

  /** Which ranks share memory. */
  Topology topology();

  CollectiveMetrics metrics();

  /**
   * Runs an operation and returns once this rank's part is done; its buffers may be reused then.
   *
   * @throws CollectiveException see {@link CollectiveException.Kind}
   */
  void run(Operation operation);

  /**
   * Runs operations as one group: no operation waits for another of the group. The exceptions are
   * collectives, which keep their order, and operations with the same peer.
   */
  void runGroup(List<Operation> operations);

  /**
   * Runs an operation on a lane, after the work that is already queued there. The operation keeps
   * its buffers until it ends, even when their owners are closed before.
   *
   * @return an event that ends with the operation
   * @throws CollectiveException of kind INVALID at once, with nothing queued, also when a buffer
   *     was freed; other failures arrive in the event
   */
  Event submit(Operation operation, Lane lane);

  /** Runs operations as {@link #runGroup} does, on a lane. */
  Event submitGroup(List<Operation> operations, Lane lane);

  /**
   * Allocates zeros of the same type and number on every rank. Collective: all ranks ask for the
   * same buffers in the same order. On one host the ranks share the memory; otherwise, or without
   * room, it is private to each rank, and the log says so once.
   *
   * @param count elements, 0 or more
   * @return open until it is closed, at most until the communicator is closed
   * @throws CollectiveException of kind MISMATCH, on all ranks, naming those that ask for another
   *     buffer
   */
  SymmetricBuffer symmetric(DataType type, long count);

  /**
   * Records the operations that the body runs on the communicator that it is given; none is
   * executed. Collective. Buffers that move later are looked up again.
   *
   * @throws CollectiveException on all ranks if the body failed on one (naming it) or ranks
   *     recorded different collectives (naming the first)
   */
  default Recording record(Consumer<Communicator> body) {
    return record(MovedBuffers.UPDATE, body);
  }

  /** As {@link #record(Consumer)}, with another reaction to buffers that move. */
  Recording record(MovedBuffers moved, Consumer<Communicator> body);

  /** Why the communicator is broken; empty while it works. */
  Optional<CollectiveException> failure();

  /** Breaks the communicator on all ranks; running and waiting operations fail with this reason. */
  void abort(String reason);

  /**
   * Releases all resources. Operations that other ranks still run with this rank fail and name it.
   * Data that was sent completely is still received.
   */
  @Override
  void close();

  /** Returns once all ranks have arrived. */
  default void barrier() {
    run(new Barrier());
  }

  /** See {@link Broadcast}, in place. */
  default void broadcast(TypedBuffer buffer, int root) {
    run(new Broadcast(buffer, buffer, root));
  }

  /** See {@link Reduce}. */
  default void reduce(TypedBuffer send, TypedBuffer receive, ReduceOp op, int root) {
    run(new Reduce(send, receive, op, root));
  }

  /** See {@link AllReduce}. */
  default void allReduce(TypedBuffer send, TypedBuffer receive, ReduceOp op) {
    run(new AllReduce(send, receive, op));
  }

  /** See {@link AllReduce}, in place. */
  default void allReduce(TypedBuffer buffer, ReduceOp op) {
    run(new AllReduce(buffer, buffer, op));
  }

  /** See {@link AllGather}. */
  default void allGather(TypedBuffer send, TypedBuffer receive) {
    run(new AllGather(send, receive));
  }

  /** See {@link ReduceScatter}. */
  default void reduceScatter(TypedBuffer send, TypedBuffer receive, ReduceOp op) {
    run(new ReduceScatter(send, receive, op));
  }

  /** See {@link AllToAll}. */
  default void allToAll(TypedBuffer send, TypedBuffer receive) {
    run(new AllToAll(send, receive));
  }

  /** See {@link RaggedAllToAll}. */
  default void raggedAllToAll(TypedBuffer send, TypedBuffer receive, RaggedLayout layout) {
    run(new RaggedAllToAll(send, receive, layout));
  }

  /** See {@link Gather}. */
  default void gather(TypedBuffer send, TypedBuffer receive, int root) {
    run(new Gather(send, receive, root));
  }

  /** See {@link Scatter}. */
  default void scatter(TypedBuffer send, TypedBuffer receive, int root) {
    run(new Scatter(send, receive, root));
  }

  /** See {@link Send}. */
  default void send(TypedBuffer buffer, int peer) {
    run(new Send(buffer, peer));
  }

  /** See {@link Receive}. */
  default void receive(TypedBuffer buffer, int peer) {
    run(new Receive(buffer, peer));
  }
}
