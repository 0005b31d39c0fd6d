package io.weft.examples.bench.transfer;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Two simulated hosts, 0 and 1, whose network has a limited rate: network namespaces with a virtual
 * cable between them, limited at both ends by {@code tc}. Needs root, iproute2 and a kernel with
 * the token bucket filter. For one thread.
 */
final class LimitedNetwork implements AutoCloseable {
  private static final long COMMAND_SECONDS = 30;

  private final String name = "wb" + ProcessHandle.current().pid();

  private LimitedNetwork() {}

  /**
   * Creates the network, without a limit.
   *
   * @throws IOException if this user may not, or a program is missing
   */
  static LimitedNetwork open() throws IOException, InterruptedException {
    LimitedNetwork network = new LimitedNetwork();
    try {
      network.connect();
      return network;
    } catch (IOException | InterruptedException | RuntimeException e) {
      network.close();
      throw e;
    }
  }

  private void connect() throws IOException, InterruptedException {
    for (int host = 0; host < 2; host++) {
      run("ip", "netns", "add", host(host));
    }
    run("ip", "link", "add", cable(0), "type", "veth", "peer", "name", cable(1));
    for (int host = 0; host < 2; host++) {
      run("ip", "link", "set", cable(host), "netns", host(host));
      inside(host, "ip", "address", "add", address(host) + "/24", "dev", cable(host));
      inside(host, "ip", "link", "set", cable(host), "up");
      inside(host, "ip", "link", "set", "lo", "up");
    }
  }

  private String host(int host) {
    return name + "." + host;
  }

  private String cable(int host) {
    return name + "c" + host;
  }

  /** The address of a host. The network is one for benchmarks (RFC 2544). */
  String address(int host) {
    return "198.19.0." + (1 + host);
  }

  /** Limits the rate of each direction. */
  void limit(int megabits) throws IOException, InterruptedException {
    for (int host = 0; host < 2; host++) {
      // The filter sends in bursts, of at least what passes between two ticks of the kernel.
      String burst = Math.max(128, megabits / 2) + "kb";
      inside(
          host,
          "tc",
          "qdisc",
          "replace",
          "dev",
          cable(host),
          "root",
          "tbf",
          "rate",
          megabits + "mbit",
          "burst",
          burst,
          "latency",
          "20ms");
    }
  }

  /** The beginning of a command that runs on a host. */
  List<String> on(int host) {
    return List.of("ip", "netns", "exec", host(host));
  }

  private void inside(int host, String... command) throws IOException, InterruptedException {
    List<String> all = new ArrayList<>(on(host));
    all.addAll(List.of(command));
    run(all.toArray(String[]::new));
  }

  private static void run(String... command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    boolean ended = process.waitFor(COMMAND_SECONDS, TimeUnit.SECONDS);
    if (!ended) {
      process.destroyForcibly();
    }
    if (!ended || process.exitValue() != 0) {
      String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      throw new IOException(
          "the row \"network\" needs root, iproute2 and a kernel with tbf, but "
              + String.join(" ", command)
              + (ended ? " failed: " + output.strip() : " did not end"));
    }
  }

  /** Removes the hosts, and the cable with them. */
  @Override
  public void close() {
    for (int host = 0; host < 2; host++) {
      try {
        run("ip", "netns", "del", host(host));
      } catch (IOException e) {
        // It was never created.
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
