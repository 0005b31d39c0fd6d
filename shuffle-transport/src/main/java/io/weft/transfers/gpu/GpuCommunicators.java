package io.weft.transfers.gpu;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.device.Deadline;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaException;
import io.weft.shuffle.peer.GpuEnd;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.PathRules.PathChoice;
import io.weft.shuffle.peer.PathRules.PathEnd;
import io.weft.transfers.gpu.TransferGpu.HostPathCommunicator;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates the communicators of pairs of GPUs: with NCCL where both ends can use it, else over the
 * hosts. Wires over the hosts map GPU memory where they can. Both ends exchange what they have and
 * reach the same choice, which is logged once with its reason. If NCCL fails to start, the pair
 * goes over the hosts, and NCCL is not tried again with that incarnation of the peer. Thread-safe.
 */
final class GpuCommunicators implements CommunicatorFactory {
  private static final Logger LOG = LoggerFactory.getLogger(GpuCommunicators.class);

  private final GpuEndpoint own;
  private final PathRules rules;
  private final Supplier<CommunicatorFactory> nccl;
  private final CommunicatorFactory hosts;
  private final Map<String, String> failed = new ConcurrentHashMap<>();
  private final Set<String> logged = ConcurrentHashMap.newKeySet();

  /**
   * Creates the factory of this executor's GPU.
   *
   * @param rules the same on all executors
   * @param nccl gives the factory of NCCL's communicators; throws if the GPU cannot be opened
   * @param hosts creates communicators of the hosts
   */
  GpuCommunicators(
      GpuEndpoint own,
      PathRules rules,
      Supplier<CommunicatorFactory> nccl,
      CommunicatorFactory hosts) {
    this.own = own;
    this.rules = rules;
    this.nccl = nccl;
    this.hosts = hosts;
  }

  @Override
  public Communicator create(Bootstrap bootstrap, CommunicatorOptions options) {
    if (bootstrap.nranks() != 2) {
      throw CollectiveException.invalid("a pair of GPUs is not " + bootstrap.nranks() + " ranks");
    }
    BootstrapRounds rounds = new BootstrapRounds(bootstrap, Deadline.after(options.timeout()));
    GpuEndpoint peer =
        GpuEndpoint.decode(rounds.exchange("gpuends", own::encode).get(1 - bootstrap.rank()));
    Optional<String> obstacle = obstacle(rounds, peer);
    if (obstacle.isPresent()) {
      return throughHosts(bootstrap, options, peer, obstacle.get());
    }
    Attempt attempt = attempt(bootstrap, rounds, options, peer);
    if (attempt.isWell()) {
      log(peer, rules.arrays(own.end(), peer.end()));
      return attempt.communicator();
    }
    Bootstrap second = new RetryBootstrap(bootstrap, attempt.otherId());
    return throughHosts(second, options, peer, attempt.failure());
  }

  /** Why this pair does not use NCCL, the same at both ends. */
  private Optional<String> obstacle(BootstrapRounds rounds, GpuEndpoint peer) {
    Supplier<String> mine =
        () ->
            rules
                .obstacle(own.end(), peer.end())
                .or(() -> preference(peer))
                .orElseGet(() -> obstacleHere(peer));
    return rounds.exchange("gpupath", () -> mine.get().getBytes(StandardCharsets.UTF_8)).stream()
        .map(reason -> new String(reason, StandardCharsets.UTF_8))
        .filter(reason -> !reason.isEmpty())
        .findFirst();
  }

  /** Why CUDA IPC is preferred; empty if it is not. It needs processes that see each other. */
  private Optional<String> preference(GpuEndpoint peer) {
    return own.seesProcessOf(peer)
        ? rules.obstacleForArrays(own.end(), peer.end())
        : Optional.empty();
  }

  /** Why this end cannot use NCCL: an earlier failure with this peer, or the GPU does not open. */
  private String obstacleHere(GpuEndpoint peer) {
    try {
      CommunicatorFactory unused = nccl.get();
      return failed.getOrDefault(peer.life(), "");
    } catch (UnavailableLibraryException | CudaException | IllegalArgumentException e) {
      return own.end().gpu() + " cannot be opened: " + e.getMessage();
    }
  }

  /**
   * The result of the start of NCCL at both ends.
   *
   * @param communicator null if the start failed
   * @param failure the reason, if it failed
   * @param otherId for the communicator over the hosts, if it failed
   */
  private record Attempt(Communicator communicator, String failure, UniqueId otherId) {
    boolean isWell() {
      return communicator != null;
    }
  }

  private Attempt attempt(
      Bootstrap bootstrap, BootstrapRounds rounds, CommunicatorOptions options, GpuEndpoint peer) {
    Communicator made = null;
    CollectiveException failure = null;
    try {
      made = nccl.get().create(bootstrap, options);
    } catch (CollectiveException e) {
      failure = e;
      String unused = failed.putIfAbsent(peer.life(), NcclOutcome.reason(e));
    }
    try {
      return settle(rounds, made, failure);
    } catch (RuntimeException e) {
      discard(made, String.valueOf(e.getMessage()));
      throw e;
    }
  }

  /** Exchanges the outcomes of both ends. */
  private static Attempt settle(
      BootstrapRounds rounds, Communicator made, CollectiveException failure) {
    List<NcclOutcome> all =
        rounds.exchange("gpunccl", () -> NcclOutcome.of(failure).encode()).stream()
            .map(NcclOutcome::decode)
            .toList();
    if (all.stream().allMatch(NcclOutcome::isWell)) {
      return new Attempt(made, "", null);
    }
    Optional<NcclOutcome> obstacle = all.stream().filter(NcclOutcome::isObstacle).findFirst();
    if (obstacle.isEmpty()) {
      throw failure != null
          ? failure
          : new CollectiveException(Kind.ABORTED, List.of(), "the other end could not start NCCL");
    }
    discard(made, "NCCL failed at the other end");
    return new Attempt(null, obstacle.get().reason(), UniqueId.decode(all.get(0).id()));
  }

  private static void discard(Communicator made, String reason) {
    if (made != null) {
      made.abort(reason);
      made.close();
    }
  }

  private Communicator throughHosts(
      Bootstrap bootstrap, CommunicatorOptions options, GpuEndpoint peer, String reason) {
    boolean mayMap = rules.mayMap(own.end(), peer.end());
    boolean tries = mayMap && own.seesProcessOf(peer);
    if (!tries) {
      String namespaces = mayMap ? "; no CUDA IPC: the processes do not see each other" : "";
      log(peer, rules.throughHosts(own.end(), peer.end(), reason + namespaces));
    }
    return new HostPathCommunicator(
        hosts.create(bootstrap, options), tries, obstacle -> logMapped(peer, reason, obstacle));
  }

  private void logMapped(GpuEndpoint peer, String reason, String obstacle) {
    log(
        peer,
        obstacle.isEmpty()
            ? rules.mapped(reason)
            : rules.throughHosts(own.end(), peer.end(), reason + "; no CUDA IPC: " + obstacle));
  }

  private void log(GpuEndpoint peer, PathChoice choice) {
    if (logged.add(peer.life() + " " + choice)) {
      LOG.info(
          "Arrays between {} of executor {} and {} of executor {} go by {}",
          own.end().gpu(),
          own.life(),
          peer.end().gpu(),
          peer.life(),
          choice);
    }
  }

  /**
   * The outcome of the start of NCCL at one end.
   *
   * @param kind of the failure; empty if it succeeded
   * @param reason of the failure
   * @param id for another communicator, if one is needed; the id of rank 0 is used
   */
  record NcclOutcome(String kind, String reason, String id) {
    private static final int MAX_REASON_CHARS = 1000;

    /** The outcome for a failure; null means success. */
    static NcclOutcome of(CollectiveException failure) {
      String id = UniqueId.create().encode();
      return failure == null
          ? new NcclOutcome("", "", id)
          : new NcclOutcome(failure.kind().name(), reason(failure), id);
    }

    static String reason(CollectiveException failure) {
      String text = "it did not start: " + failure.getMessage();
      return text.substring(0, Math.min(MAX_REASON_CHARS, text.length()));
    }

    boolean isWell() {
      return kind.isEmpty();
    }

    /** Whether NCCL failed, but both ends still work and can go on without NCCL. */
    boolean isObstacle() {
      return kind.equals(Kind.MISMATCH.name())
          || kind.equals(Kind.IO.name())
          || kind.equals(Kind.INVALID.name());
    }

    byte[] encode() throws IOException {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      try (DataOutputStream out = new DataOutputStream(bytes)) {
        out.writeUTF(kind);
        out.writeUTF(reason);
        out.writeUTF(id);
      }
      return bytes.toByteArray();
    }

    /**
     * Decodes the bytes of {@link #encode}.
     *
     * @throws IllegalArgumentException if the bytes have another format
     */
    static NcclOutcome decode(byte[] bytes) {
      try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
        return new NcclOutcome(in.readUTF(), in.readUTF(), in.readUTF());
      } catch (IOException e) {
        throw new IllegalArgumentException("the other end's message about NCCL is damaged", e);
      }
    }
  }

  /**
   * A second use of a bootstrap with another id, after the first communicator failed. Closes
   * nothing: it ends with the first.
   */
  record RetryBootstrap(Bootstrap first, UniqueId id) implements Bootstrap {
    @Override
    public int rank() {
      return first.rank();
    }

    @Override
    public int nranks() {
      return first.nranks();
    }

    @Override
    public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
      return first.exchange("second" + round, mine, deadline);
    }

    @Override
    public void close() {
      // The opener closes the bootstrap.
    }
  }

  /**
   * The message that the two ends of a clique exchange before they choose a path.
   *
   * @param life id and incarnation of the executor, for example "2@00c0ffee"
   * @param end the properties that the choice depends on
   * @param pids the pid namespace of the process, for example "pid:[4026531836]"; empty if unknown.
   *     Only within one namespace can an end check whether the other process is alive
   */
  record GpuEndpoint(String life, PathEnd end, String pids) {
    private static final Path PID_NAMESPACE = Path.of("/proc/self/ns/pid");

    /** The message of this process. */
    GpuEndpoint(String life, PathEnd end) {
      this(life, end, ownPids());
    }

    private static String ownPids() {
      try {
        return Files.readSymbolicLink(PID_NAMESPACE).toString();
      } catch (IOException | UnsupportedOperationException e) {
        return "";
      }
    }

    /** Whether each end can detect by the pid that the other's process has ended. */
    boolean seesProcessOf(GpuEndpoint other) {
      return pids.equals(other.pids) && !pids.isEmpty();
    }

    byte[] encode() throws IOException {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      GpuEnd gpu = end.gpu();
      try (DataOutputStream out = new DataOutputStream(bytes)) {
        out.writeUTF(life);
        out.writeUTF(end.kernel());
        out.writeUTF(gpu.uuid());
        out.writeInt(gpu.ordinal());
        out.writeUTF(gpu.name());
        out.writeUTF(gpu.nccl());
        out.writeUTF(gpu.obstacle());
        out.writeBoolean(gpu.sharesGpu());
        out.writeUTF(pids);
      }
      return bytes.toByteArray();
    }

    /**
     * Decodes the bytes of {@link #encode}.
     *
     * @throws IllegalArgumentException if the bytes have another format
     */
    static GpuEndpoint decode(byte[] bytes) {
      try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
        String life = in.readUTF();
        String kernel = in.readUTF();
        String uuid = in.readUTF();
        int ordinal = in.readInt();
        GpuEnd gpu =
            new GpuEnd(uuid, ordinal, in.readUTF(), in.readUTF(), in.readUTF(), in.readBoolean());
        return new GpuEndpoint(life, new PathEnd(kernel, gpu), in.readUTF());
      } catch (IOException e) {
        throw new IllegalArgumentException("the other end's message about its GPU is damaged", e);
      }
    }
  }
}
