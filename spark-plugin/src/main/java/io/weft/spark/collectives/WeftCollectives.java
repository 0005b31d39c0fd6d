package io.weft.spark.collectives;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.GpuCommunicator;
import io.weft.collectives.SymmetricBuffer;
import io.weft.spark.config.Activation;
import java.time.Duration;
import java.util.Optional;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.TaskContext;

/**
 * Collectives for the tasks of a barrier stage:
 *
 * <pre>{@code
 * rdd.barrier().mapPartitions(rows -> {
 *   Communicator communicator = WeftCollectives.communicator(BarrierTaskContext.get());
 *   SymmetricBuffer gradients = communicator.symmetric(DataType.FLOAT32, 1 << 20);
 *   communicator.allReduce(gradients.elements(), ReduceOp.AVERAGE);
 *   ...
 * });
 * }</pre>
 *
 * <p>The rank is the partition, and all tasks of the stage take part. Each stage attempt has its
 * own communicator with its own unique id. When a task fails, is killed or loses its executor, the
 * operations of the others fail with a {@link CollectiveException} that names it. The communicator
 * is closed when its task ends, if the task has not closed it before.
 *
 * <p>Spark repeats a barrier stage that feeds a shuffle; a job whose last stage is a barrier stage
 * fails when one of its tasks does.
 *
 * <p>Thread-safe.
 */
public final class WeftCollectives {
  private WeftCollectives() {}

  /**
   * The communicator of this task's stage attempt, with the timeout {@code
   * spark.weft.collectives.timeout}. The first call creates it together with all other tasks of the
   * stage, and waits for them. Later calls of the same task return the same communicator.
   *
   * @throws IllegalStateException outside of a barrier stage, or where Weft's plugin is off
   * @throws CollectiveException naming the tasks that failed or did not come within the timeout
   */
  public static Communicator communicator(BarrierTaskContext context) {
    ExecutorCollectives collectives = collectives();
    return collectives.communicator(checked(context), collectives.timeout());
  }

  /**
   * As {@link #communicator(BarrierTaskContext)}, with another timeout for the creation and for
   * every operation. All tasks must pass the same timeout. An existing communicator keeps its own.
   *
   * @param timeout 10 ms or more
   */
  public static Communicator communicator(BarrierTaskContext context, Duration timeout) {
    return collectives().communicator(checked(context), timeout);
  }

  /**
   * As {@link #communicator(BarrierTaskContext)}, for the task that runs on this thread. In a stage
   * that is not a barrier stage this throws an exception that names the cause, while {@code
   * BarrierTaskContext.get()} throws a ClassCastException.
   */
  public static Communicator communicator() {
    return communicator(currentTask());
  }

  /**
   * A communicator of the GPUs of this stage's executors, with the timeout {@code
   * spark.weft.collectives.timeout}. Each task runs on the GPU that Spark gave to its executor,
   * else on the first that the executor sees. Tasks of one executor share its GPU, at most two,
   * which NCCL takes only from 2.30.3 on and with {@code NCCL_MULTI_RANK_GPU_ENABLE=1}. A task may
   * use this communicator and {@link #communicator(BarrierTaskContext)}; all tasks then ask for
   * them in the same order. That one refuses {@link io.weft.collectives.GpuBuffer}s. Otherwise it
   * is like it.
   *
   * @throws IllegalStateException as {@link #communicator(BarrierTaskContext)}
   * @throws CollectiveException on all tasks: of kind INVALID if one has no GPU with NCCL, or NCCL
   *     cannot connect two of them, naming the ranks; the tasks may go on without GPUs. Other kinds
   *     as {@link #communicator(BarrierTaskContext)}
   */
  public static GpuCommunicator onGpu(BarrierTaskContext context) {
    ExecutorCollectives collectives = collectives();
    return collectives.onGpu(checked(context), collectives.timeout());
  }

  /**
   * As {@link #onGpu(BarrierTaskContext)}, with another timeout, see {@link
   * #communicator(BarrierTaskContext, Duration)}. Its creation has three steps, each with this
   * timeout: the rendezvous, opening the GPU, and connecting.
   */
  public static GpuCommunicator onGpu(BarrierTaskContext context, Duration timeout) {
    return collectives().onGpu(checked(context), timeout);
  }

  /**
   * Allocates a symmetric buffer of the task's communicator: zeros of the same type and number on
   * every rank, in the executors' shared memory. Collective: all tasks ask for the same buffers in
   * the same order. It is closed when its task ends, at the latest. Its memory is kept for the next
   * barrier stage with the same executors, until it is idle or shared memory is short.
   *
   * @param count elements, 0 or more
   * @throws IllegalStateException as {@link #communicator(BarrierTaskContext)}
   * @throws CollectiveException of kind MISMATCH, naming the ranks that ask for another buffer
   * @see Communicator#symmetric
   */
  public static SymmetricBuffer symmetric(BarrierTaskContext context, DataType type, long count) {
    return communicator(context).symmetric(type, count);
  }

  private static BarrierTaskContext currentTask() {
    return TaskContext.get() instanceof BarrierTaskContext barrier ? barrier : null;
  }

  private static BarrierTaskContext checked(BarrierTaskContext context) {
    if (context == null) {
      TaskContext current = TaskContext.get();
      throw new IllegalStateException(
          (current == null
                  ? "This thread runs no task of Spark"
                  : "Stage %d is no barrier stage".formatted(current.stageId()))
              + ": communicators are for the tasks of rdd.barrier().mapPartitions(...)");
    }
    return context;
  }

  private static ExecutorCollectives collectives() {
    Optional<ExecutorCollectives> running = ExecutorCollectives.running();
    return running.orElseThrow(
        () ->
            new IllegalStateException(
                ("Weft has no communicators in this JVM. Is spark.plugins set to %s, is this a task"
                        + " on an executor, and does the driver's log say that Weft stays off?")
                    .formatted(Activation.PLUGIN)));
  }
}
