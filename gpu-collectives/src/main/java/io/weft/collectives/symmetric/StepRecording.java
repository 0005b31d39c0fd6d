package io.weft.collectives.symmetric;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.CollectiveMetrics;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.GpuCommunicator;
import io.weft.collectives.MovedBuffers;
import io.weft.collectives.Operation;
import io.weft.collectives.OrderedCommunicator;
import io.weft.collectives.OrderedCommunicator.ReplayStep;
import io.weft.collectives.Recording;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.Topology;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.collectives.symmetric.GraphCapturer.StepGraph;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.Lane;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * A sequence of collectives on fixed buffers. All ranks compare the sequence once, when it is
 * recorded. Before each replay, one all-reduce of 4 bytes checks that all buffers still exist. If a
 * buffer has moved, either the recording is updated, or all ranks refuse the replay.
 *
 * <p>If the communicator's device can run the steps without the host, they are captured as graphs:
 * when they are recorded, and again when a buffer has moved. The memory of all buffers is then kept
 * until the recording is closed. Otherwise {@link #whyNoGraph} gives the reason.
 *
 * <p>One thread at a time on each rank. {@link #record}, {@link #replay} and {@link #submit} are
 * collective.
 */
public final class StepRecording implements Recording {
  private static final int READY = 0;
  private static final int MOVED = 1;
  private static final int REFUSED = 2;

  private final Communicator communicator;
  private final MovedBuffers policy;
  private final ByteBuffer memory = ByteBuffer.allocateDirect(Integer.BYTES);
  private final TypedBuffer verdict = TypedBuffer.wrap(memory, DataType.INT32);
  private List<RecordedStep> steps;

  /** The steps as the host runs them; some are several recorded steps. */
  private List<? extends ReplayStep> replayed;

  private long replays;
  private long updates;
  private long refusals;

  /** Runs the steps on the device; null if this rank's host runs them. */
  private StepGraph graph;

  private String whyNoGraph = "the communicator is not of devices that run graphs";
  private boolean closed;

  private StepRecording(Communicator communicator, MovedBuffers policy, List<RecordedStep> steps) {
    this.communicator = communicator;
    this.policy = policy;
    this.steps = steps;
  }

  /**
   * Records the operations that the body runs on the given communicator; none is executed.
   *
   * @param body runs on the caller's thread; its operations are checked as usual
   * @throws CollectiveException on all ranks if the body failed on one (naming it) or ranks
   *     recorded different collectives (naming the first)
   */
  public static StepRecording record(
      Communicator communicator, MovedBuffers policy, Consumer<Communicator> body) {
    RecordingCommunicator capture = new RecordingCommunicator(communicator);
    List<byte[]> all =
        rounds(communicator)
            .exchange(
                "recording",
                () -> {
                  body.accept(capture);
                  capture.close();
                  return encode(capture.steps());
                });
    requireSame(all);
    StepRecording recording = new StepRecording(communicator, policy, capture.steps());
    recording.captureGraph();
    recording.fuse();
    return recording;
  }

  /** Buffers of device communicators may be in device memory, which the host does not copy. */
  private void fuse() {
    replayed =
        communicator instanceof GraphCapturer
            ? steps
            : FusedSteps.of(steps, FusedSteps.agree(rounds(communicator), steps));
  }

  private void captureGraph() {
    if (communicator instanceof GraphCapturer device) {
      GraphCapturer.Captured captured =
          device.capture(steps.stream().map(RecordedStep::operations).toList());
      graph = captured.graph().orElse(null);
      whyNoGraph = captured.reason();
    }
  }

  @Override
  public Optional<String> whyNoGraph() {
    return graph == null ? Optional.of(whyNoGraph) : Optional.empty();
  }

  private static BootstrapRounds rounds(Communicator communicator) {
    return new BootstrapRounds(
        new CommunicatorBootstrap(communicator), Deadline.after(communicator.timeout()));
  }

  /** One line for each step that has collectives. */
  private static byte[] encode(List<RecordedStep> steps) {
    List<String> lines =
        steps.stream().map(RecordedStep::signature).filter(line -> !line.isEmpty()).toList();
    return String.join("\n", lines).getBytes(StandardCharsets.UTF_8);
  }

  private static void requireSame(List<byte[]> all) {
    String[] first = lines(all.get(0));
    for (int rank = 1; rank < all.size(); rank++) {
      String[] other = lines(all.get(rank));
      for (int step = 0; step < Math.max(first.length, other.length); step++) {
        String mine = step < first.length ? first[step] : "nothing more";
        String theirs = step < other.length ? other[step] : "nothing more";
        if (!mine.equals(theirs)) {
          throw new CollectiveException(
              Kind.MISMATCH,
              List.of(0, rank),
              "recordings differ: as collective step "
                  + step
                  + " rank 0 has "
                  + mine
                  + " but rank "
                  + rank
                  + " has "
                  + theirs);
        }
      }
    }
  }

  private static String[] lines(byte[] message) {
    return new String(message, StandardCharsets.UTF_8).split("\n", -1);
  }

  @Override
  public int size() {
    return steps.size();
  }

  @Override
  public void replay() {
    agree();
    if (graph != null) {
      graph.replay();
      return;
    }
    if (!steps.isEmpty() && communicator instanceof OrderedCommunicator ordered) {
      ordered.replay(replayed);
      return;
    }
    steps.forEach(step -> communicator.runGroup(step.operations()));
  }

  @Override
  public Event submit(Lane lane) {
    agree();
    if (graph != null) {
      return graph.submit(lane);
    }
    if (!steps.isEmpty() && communicator instanceof OrderedCommunicator ordered) {
      return ordered.submitReplay(replayed, lane);
    }
    Event last = HostEvent.completed("an empty recording");
    for (RecordedStep step : steps) {
      last = communicator.submitGroup(step.operations(), lane);
    }
    return last;
  }

  private void agree() {
    if (closed) {
      throw CollectiveException.invalid("the recording was closed");
    }
    Optional<String> reason = reasonToRefuse();
    int verdicts = highest(reason.isPresent() ? REFUSED : hasMoved() ? MOVED : READY);
    if (verdicts == REFUSED) {
      refusals++;
      throw refusal(reason.orElse(""));
    }
    updateMoved();
    if (verdicts == MOVED) {
      // Buffers that have moved on any rank may overlap others now.
      fuse();
      if (graph != null) {
        closeGraph();
        captureGraph();
      }
    }
    replays++;
  }

  private boolean hasMoved() {
    return steps.stream().anyMatch(RecordedStep::hasMoved);
  }

  private int highest(int mine) {
    if (communicator instanceof GraphCapturer device) {
      return device.agree(mine);
    }
    Memory.putInt(verdict.address(), mine);
    communicator.allReduce(verdict, ReduceOp.MAX);
    return Memory.getInt(verdict.address());
  }

  private Optional<String> reasonToRefuse() {
    for (int i = 0; i < steps.size(); i++) {
      RecordedStep step = steps.get(i);
      Optional<String> obstacle = step.whyNot();
      if (obstacle.isEmpty() && policy == MovedBuffers.REFUSE && step.hasMoved()) {
        obstacle = Optional.of(step.describeMove());
      }
      if (obstacle.isPresent()) {
        return Optional.of("step " + i + ": " + obstacle.get());
      }
    }
    return Optional.empty();
  }

  /** Every rank learns every reason. */
  private CollectiveException refusal(String mine) {
    List<byte[]> reasons =
        rounds(communicator).exchange("refusal", () -> mine.getBytes(StandardCharsets.UTF_8));
    List<Integer> ranks = new ArrayList<>();
    StringBuilder text = new StringBuilder("the recording cannot be replayed");
    for (int rank = 0; rank < reasons.size(); rank++) {
      if (reasons.get(rank).length > 0) {
        ranks.add(rank);
        text.append("; rank ").append(rank).append(", ");
        text.append(new String(reasons.get(rank), StandardCharsets.UTF_8));
      }
    }
    return new CollectiveException(Kind.INVALID, ranks, text.toString());
  }

  private void updateMoved() {
    if (!hasMoved()) {
      return;
    }
    steps = steps.stream().map(RecordedStep::current).toList();
    updates++;
  }

  @Override
  public ReplayStatistics statistics() {
    return new ReplayStatistics(replays, updates, refusals);
  }

  private void closeGraph() {
    StepGraph last = graph;
    graph = null;
    if (last != null) {
      last.close();
    }
  }

  @Override
  public void close() {
    closed = true;
    closeGraph();
  }

  /**
   * A communicator that records the operations it is called with and runs none of them. One thread
   * at a time.
   */
  static final class RecordingCommunicator implements Communicator {
    private final Communicator communicator;
    private final List<RecordedStep> steps = new ArrayList<>();
    private boolean closed;

    RecordingCommunicator(Communicator communicator) {
      this.communicator = communicator;
    }

    List<RecordedStep> steps() {
      return List.copyOf(steps);
    }

    @Override
    public int rank() {
      return communicator.rank();
    }

    @Override
    public int nranks() {
      return communicator.nranks();
    }

    @Override
    public UniqueId id() {
      return communicator.id();
    }

    @Override
    public Duration timeout() {
      return communicator.timeout();
    }

    @Override
    public Topology topology() {
      return communicator.topology();
    }

    @Override
    public CollectiveMetrics metrics() {
      return communicator.metrics();
    }

    @Override
    public void run(Operation operation) {
      runGroup(List.of(operation));
    }

    @Override
    public void runGroup(List<Operation> operations) {
      if (closed) {
        throw CollectiveException.invalid("the recording has ended; run this on the communicator");
      }
      for (Operation operation : operations) {
        operation.check(rank(), nranks());
        if (!(communicator instanceof GpuCommunicator)) {
          operation.requireOnHost();
        }
      }
      if (!operations.isEmpty()) {
        steps.add(new RecordedStep(operations));
      }
    }

    @Override
    public Event submit(Operation operation, Lane lane) {
      throw submitted();
    }

    @Override
    public Event submitGroup(List<Operation> operations, Lane lane) {
      throw submitted();
    }

    private static CollectiveException submitted() {
      return CollectiveException.invalid(
          "a recording has one order and no lanes; run the operation, and submit the recording");
    }

    @Override
    public SymmetricBuffer symmetric(DataType type, long count) {
      throw CollectiveException.invalid("allocate buffers before the recording, not within it");
    }

    @Override
    public Recording record(MovedBuffers moved, Consumer<Communicator> body) {
      throw CollectiveException.invalid("a recording within a recording");
    }

    @Override
    public Optional<CollectiveException> failure() {
      return communicator.failure();
    }

    @Override
    public void abort(String reason) {
      communicator.abort(reason);
    }

    /** Ends the recording; the real communicator stays open. */
    @Override
    public void close() {
      closed = true;
    }
  }
}
