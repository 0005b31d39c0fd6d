package io.weft.tests.support;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
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
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Two simulated hosts beside this one: network namespaces with one address each, on a network that
 * can be slow, lossy or cut between the two. Frames really get lost, so a test includes the
 * kernel's TCP. Use a static field with {@code @RegisterExtension}, before the cluster. It needs
 * root, iproute2, Python and tap devices. A class is skipped, with the reason, if one is missing.
 * It fails on any other error, or if the environment has WEFT_REQUIRE_NAMESPACES.
 *
 * <p>It uses a switch in user space instead of {@code tc netem}, which many kernels are built
 * without.
 */
public final class NetworkNamespaces implements BeforeAllCallback, AfterAllCallback {
  private static final Duration LIMIT = Duration.ofMinutes(3);
  private static final String SWITCH = "link.py";
  private static final Path TUN = Path.of("/dev/net/tun");
  private static final String REQUIRED = "WEFT_REQUIRE_NAMESPACES";
  private static final String BOOT_ID = "/proc/sys/kernel/random/boot_id";
  private static final List<String> ROLES = List.of("driver", "first", "second", "trial");
  private static final int TRIAL = 3;

  /** Messages of commands that lack a permission, even if their user is root. */
  private static final Pattern FORBIDDEN =
      Pattern.compile("not permitted|[Pp]ermission denied|Read-only file system");

  /** Fewer, larger frames: the switch limits the throughput of this network. */
  private static final int FRAME_BYTES = 9000;

  private final Workspace workspace;
  private final long number = ProcessHandle.current().pid() % 250;
  private ChildProcess network;
  private int orders;

  /** The network is created when the class begins. */
  public NetworkNamespaces(Workspace workspace) {
    this.workspace = workspace;
  }

  /** The address of the driver (0), or of the first or second host (1, 2). */
  public String address(int host) {
    // A network for benchmarks (RFC 2544), which no machine uses otherwise.
    return "198.18." + number + "." + (1 + host);
  }

  /**
   * Wraps a command to run on a host, 1 or 2. Each host shows another kernel boot id, so that Weft
   * does not take the hosts for one with shared memory.
   */
  public List<String> enter(int host, List<String> command) {
    List<String> entered = new ArrayList<>(List.of("ip", "netns", "exec", namespace(host)));
    entered.addAll(List.of("sh", "-c", "mount --bind \"$0\" " + BOOT_ID + " && exec \"$@\""));
    entered.add(bootId(host).toString());
    entered.addAll(command);
    return entered;
  }

  private Path bootId(int role) {
    return workspace.folder().resolve("boot-id-" + ROLES.get(role));
  }

  private void writeBootIds() {
    try {
      for (int role = 1; role < ROLES.size(); role++) {
        Files.writeString(bootId(role), UUID.randomUUID().toString());
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private String namespace(int host) {
    return "weft-" + number + "-" + ROLES.get(host);
  }

  private String port(int host) {
    return "weft" + number + "." + host;
  }

  /** Sets the delay each way, and the loss in percent, of frames between the hosts. */
  public void impair(int lateMillis, double losePercent) {
    order("late " + lateMillis + " lose " + losePercent);
  }

  /** Drops all frames between the hosts; the driver still reaches both. */
  public void cut() {
    order("cut");
  }

  /** Drops all frames from and to a host, 1 or 2, also those of the driver. */
  public void cutOff(int host) {
    order("cut-off " + host);
  }

  /** Restores the network. */
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
    writeBootIds();
    Optional<String> lacking = lacking().or(this::connect);
    String reason = "no network namespaces here: " + lacking.orElse("");
    if (lacking.isPresent() && System.getenv(REQUIRED) != null) {
      throw new AssertionError(reason + ", and " + REQUIRED + " is set");
    }
    assumeTrue(lacking.isEmpty(), reason);
    configure();
  }

  /** The missing program, device or permission; empty if everything needed is present. */
  private Optional<String> lacking() {
    for (String program : List.of("ip", "python3")) {
      if (!isOnPath(program)) {
        return Optional.of("there is no program " + program);
      }
    }
    return Files.exists(TUN) ? forbidden() : Optional.of("there is no device " + TUN);
  }

  private static boolean isOnPath(String program) {
    return Stream.of(System.getenv("PATH").split(File.pathSeparator))
        .anyMatch(folder -> Files.isExecutable(Path.of(folder, program)));
  }

  /** Why this user may not create a namespace. */
  private Optional<String> forbidden() {
    removeNamespace(TRIAL);
    List<String> attempt = List.of("ip", "netns", "add", namespace(TRIAL));
    try (ChildProcess child = ChildProcess.start("a trial", attempt, Path.of("/"), Map.of())) {
      boolean made = child.awaitExit(LIMIT) == 0;
      String output = child.output();
      if (!made && !FORBIDDEN.matcher(output).find()) {
        throw new AssertionError(child.describe("made no namespace"));
      }
      return made ? forbiddenInside() : Optional.of("this user may not make any: " + output);
    } finally {
      removeNamespace(TRIAL);
    }
  }

  /** Why this user may not simulate another kernel there. */
  private Optional<String> forbiddenInside() {
    List<String> attempt = enter(TRIAL, List.of("true"));
    try (ChildProcess child = ChildProcess.start("a trial", attempt, Path.of("/"), Map.of())) {
      boolean entered = child.awaitExit(LIMIT) == 0;
      String output = child.output();
      if (!entered && !FORBIDDEN.matcher(output).find()) {
        throw new AssertionError(child.describe("did not enter a namespace"));
      }
      return entered ? Optional.empty() : Optional.of("this user may not mount: " + output);
    }
  }

  /** Starts the network; returns why this user may not, if so. */
  private Optional<String> connect() {
    network =
        ChildProcess.start(
            "the network",
            List.of("python3", script().toString(), port(0), port(1), port(2)),
            Path.of("/"),
            Map.of());
    Matcher answer = network.awaitLine("^made$|^not permitted: (.*)$", LIMIT);
    return Optional.ofNullable(answer.group(1))
        .map(why -> "this user may not use " + TUN + ": " + why);
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

  /** The ports are removed with the process that created them. */
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

  /** Also removes those that a killed process with the same id has left. */
  private void removeNamespaces() {
    for (int host = 1; host <= 2; host++) {
      removeNamespace(host);
    }
  }

  private void removeNamespace(int role) {
    if (Files.exists(Path.of("/run/netns", namespace(role)))) {
      ChildProcess.run("ip", "netns", "del", namespace(role));
    }
  }
}
