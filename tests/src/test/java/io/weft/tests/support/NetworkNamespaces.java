package io.weft.tests.support;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Two hosts beside this one: network namespaces with an address each, on a network that can be
 * slow, lossy or cut between the two. Frames really get lost, so what is tested includes the
 * kernel's TCP. A static field with {@code @RegisterExtension}, before the cluster. Needs root,
 * iproute2, Python and tap devices; a class is skipped, with the reason, where one is missing.
 *
 * <p>A switch in user space does it rather than {@code tc netem}, which many kernels are built
 * without.
 */
public final class NetworkNamespaces implements BeforeAllCallback, AfterAllCallback {
  private static final Duration LIMIT = Duration.ofSeconds(30);
  private static final String SWITCH = "link.py";
  private static final List<String> ROLES = List.of("driver", "first", "second");

  /** Fewer, larger frames: the switch is what limits this network. */
  private static final int FRAME_BYTES = 9000;

  private final Workspace workspace;
  private final long number = ProcessHandle.current().pid() % 250;
  private ChildProcess network;
  private int orders;

  /** Not made before the class begins. */
  public NetworkNamespaces(Workspace workspace) {
    this.workspace = workspace;
  }

  /** The driver's address, 0, or that of the first or second host, 1 and 2. */
  public String address(int host) {
    // A network for benchmarks (RFC 2544), which no machine has for anything else.
    return "198.18." + number + "." + (1 + host);
  }

  /** A command that runs on a host, 1 or 2. */
  public List<String> enter(int host, List<String> command) {
    List<String> entered = new ArrayList<>(List.of("ip", "netns", "exec", namespace(host)));
    entered.addAll(command);
    return entered;
  }

  private String namespace(int host) {
    return "weft-" + number + "-" + ROLES.get(host);
  }

  private String port(int host) {
    return "weft" + number + "." + host;
  }

  /** From now on frames between the hosts come so late, each way, and so many never. */
  public void impair(int lateMillis, double losePercent) {
    order("late " + lateMillis + " lose " + losePercent);
  }

  /** From now on nothing passes between the hosts; the driver still reaches both. */
  public void cut() {
    order("cut");
  }

  /** The hosts reach each other again. */
  public void heal() {
    order("heal");
  }

  private synchronized void order(String order) {
    orders++;
    network.send(order);
    int expected = orders;
    Awaitility.await(order)
        .atMost(LIMIT)
        .until(() -> network.lines(line -> line.equals("done")).size() == expected);
  }

  @Override
  public void beforeAll(ExtensionContext context) {
    Optional<String> reason = open();
    assumeTrue(reason.isEmpty(), () -> reason.orElseThrow());
  }

  /** Makes the network; why that is not possible, if it is not. */
  private Optional<String> open() {
    try {
      network =
          ChildProcess.start(
              "the network",
              List.of("python3", script().toString(), port(0), port(1), port(2)),
              Path.of("/"),
              Map.of());
      network.awaitLine("^made$", LIMIT);
      configure();
      return Optional.empty();
    } catch (AssertionError | UncheckedIOException e) {
      return Optional.of("no network namespaces here (root, iproute2, python3): " + e.getMessage());
    }
  }

  private Path script() {
    Path script = workspace.folder().resolve(SWITCH);
    try (InputStream in = NetworkNamespaces.class.getResourceAsStream(SWITCH)) {
      Files.copy(in, script);
      return script;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void configure() {
    up(0, List.of());
    removeNamespaces();
    for (int host = 1; host <= 2; host++) {
      ChildProcess.run("ip", "netns", "add", namespace(host));
      ChildProcess.run("ip", "link", "set", port(host), "netns", namespace(host));
      List<String> inside = enter(host, List.of());
      run(inside, "ip", "link", "set", "lo", "up");
      up(host, inside);
    }
  }

  private void up(int host, List<String> prefix) {
    run(prefix, "ip", "address", "add", address(host) + "/24", "dev", port(host));
    run(prefix, "ip", "link", "set", port(host), "mtu", Integer.toString(FRAME_BYTES), "up");
  }

  private static void run(List<String> prefix, String... command) {
    List<String> all = new ArrayList<>(prefix);
    all.addAll(List.of(command));
    ChildProcess.run(all.toArray(String[]::new));
  }

  /** The ports go with the process that has made them. */
  @Override
  public void afterAll(ExtensionContext context) {
    try {
      if (network != null) {
        network.close();
      }
    } finally {
      removeNamespaces();
    }
  }

  /** Also those that a killed process of the same number has left. */
  private void removeNamespaces() {
    for (int host = 1; host <= 2; host++) {
      if (Files.exists(Path.of("/run/netns", namespace(host)))) {
        ChildProcess.run("ip", "netns", "del", namespace(host));
      }
    }
  }
}
