package io.weft.examples.bench.collectives;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.bootstrap.FileBootstrap;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/**
 * One rank of {@link WeftSide}: follows orders from standard input, a line each, until it ends. The
 * orders and answers are those of {@code mpi-collectives.c}; an answer also says which algorithm
 * was used.
 */
public final class RankMain {
  private static final Duration TIMEOUT = Duration.ofMinutes(1);

  private RankMain() {}

  /** Arguments are those of {@link RankOptions#arguments}. */
  public static void main(String[] arguments) throws IOException {
    RankOptions options = RankOptions.parse(arguments);
    try (Bootstrap bootstrap =
            FileBootstrap.open(options.work(), options.id(), options.rank(), options.nranks());
        Communicator communicator =
            new HostCommunicators(host(options))
                .create(bootstrap, CommunicatorOptions.DEFAULT.withTimeout(TIMEOUT))) {
      System.out.println("ready " + communicator.nranks());
      try (RankBuffers buffers = buffers(options, communicator)) {
        follow(buffers, communicator);
      }
    }
  }

  private static RankBuffers buffers(RankOptions options, Communicator communicator) {
    return options.kind() == RankOptions.Kind.SYMMETRIC
        ? new SymmetricBuffers(communicator, options.memory())
        : new PrivateBuffers();
  }

  private static HostOptions host(RankOptions options) {
    HostOptions host = HostOptions.defaults().withFolder(options.memory());
    return options.kind() == RankOptions.Kind.TCP
        ? host.withHostIdentity("rank-" + options.rank())
        : host;
  }

  private static void follow(RankBuffers buffers, Communicator communicator) throws IOException {
    RankWork work = new RankWork(communicator, buffers);
    BufferedReader orders =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      String[] words = CollectiveCase.words(line);
      CollectiveCase test = CollectiveCase.parse(words, communicator.nranks());
      try {
        Timing timing =
            words[5].equals("1") ? work.check(test) : work.time(test, Integer.parseInt(words[6]));
        System.out.printf(
            "done %d %d %d %s%n",
            timing.nanos(), timing.cpuNanos(), timing.errors(), timing.algorithm());
      } catch (RuntimeException e) {
        e.printStackTrace();
        System.out.println("failed " + e.getMessage());
        return;
      }
    }
  }
}
