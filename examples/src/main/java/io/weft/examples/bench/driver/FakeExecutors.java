package io.weft.examples.bench.driver;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.PeerAddress.KnownPeers;
import io.weft.spark.config.WeftVersion;
import io.weft.spark.runtime.DriverPeers;
import io.weft.spark.runtime.MessageCodec;
import io.weft.spark.runtime.Messages.Announce;
import io.weft.spark.runtime.Messages.Hello;
import io.weft.spark.runtime.Messages.Lookup;
import io.weft.spark.runtime.Messages.ToDriver;
import io.weft.spark.runtime.Messages.Verdict;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.internal.plugin.PluginContextImpl;
import org.apache.spark.rpc.RpcEnv;
import scala.Option;

/**
 * Executors that only talk to the driver: with the real messages, by Spark's RPC over one
 * connection. They claim to run on hosts with four executors each. For one thread.
 */
final class FakeExecutors implements AutoCloseable {
  static final String PLUGIN = "io.weft.spark.WeftPlugin";

  private static final String LOOPBACK = "127.0.0.1";
  private static final int EXECUTORS_PER_HOST = 4;
  private static final int MAX_THREADS = 1000;
  private static final Duration LOOKUP_TIMEOUT = Duration.ofMinutes(4);
  private static final Duration DEADLINE = Duration.ofMinutes(5);

  private final RpcEnv rpc;
  private final ExecutorService threads;
  private final List<PeerAddress> addresses = new ArrayList<>();
  private final List<PluginContext> contexts = new ArrayList<>();
  private final Set<String> ids = new HashSet<>();

  /**
   * The sizes of the messages of one look-up.
   *
   * @param request of the executor
   * @param answer of the driver
   */
  record Bytes(int request, int answer) {}

  /**
   * Connects to a driver on this host.
   *
   * @param driverPort of its RPC
   */
  FakeExecutors(int driverPort, int count) {
    SparkConf conf =
        new SparkConf(false)
            .set("spark.driver.host", LOOPBACK)
            .set("spark.driver.port", Integer.toString(driverPort));
    rpc =
        RpcEnv.create(
            "weft-fake-executors",
            LOOPBACK,
            -1,
            conf,
            new SecurityManager(conf, Option.empty(), null),
            true);
    AtomicInteger number = new AtomicInteger();
    threads =
        Executors.newFixedThreadPool(
            Math.min(count, MAX_THREADS),
            task -> {
              Thread thread = new Thread(task, "weft-fake-executor-" + number.incrementAndGet());
              thread.setDaemon(true);
              return thread;
            });
    SplittableRandom random = new SplittableRandom(1);
    for (int i = 0; i < count; i++) {
      addresses.add(address(i, random));
      ids.add(addresses.get(i).executorId());
      contexts.add(
          new PluginContextImpl(PLUGIN, rpc, null, conf, addresses.get(i).executorId(), Map.of()));
    }
  }

  private static PeerAddress address(int number, SplittableRandom random) {
    int host = number / EXECUTORS_PER_HOST;
    String id = Integer.toString(number + 1);
    String incarnation = "%08x".formatted(random.nextInt());
    return new PeerAddress(
        id,
        incarnation,
        "10.%d.%d.%d".formatted(host >> 16, (host >> 8) & 255, host & 255),
        30_000 + random.nextInt(20_000),
        "/dev/shm/weft-spark/app-20261123-0001-5e884898/" + id + "-" + incarnation,
        "%016x%016x".formatted(random.nextLong(), random.nextLong()),
        new UUID(host, host).toString(),
        WeftVersion.current());
  }

  /** Greets the driver and announces all executors at the same time. Returns the seconds. */
  double announce() throws IOException, InterruptedException {
    return each(
        number -> {
          PeerAddress own = addresses.get(number);
          admitted(ask(number, new Hello(own.executorId(), own.host(), own.version())));
          admitted(ask(number, new Announce(own, null)));
          return null;
        });
  }

  private static void admitted(byte[] answer) throws IOException {
    String refusal = ((Verdict) MessageCodec.decode(answer)).refusal();
    if (refusal != null) {
      throw new IOException(refusal);
    }
  }

  /**
   * Each executor looks up all others, all at the same time, as at the start of the first stage
   * that reads a shuffle. Returns the seconds.
   *
   * @throws IOException if an answer is wrong
   */
  double lookUp() throws IOException, InterruptedException {
    return each(
        number -> {
          PeerAddress own = addresses.get(number);
          KnownPeers peers =
              new KnownPeers(new DriverPeers(contexts.get(number), own.bootId(), LOOKUP_TIMEOUT));
          Set<String> others = new HashSet<>(ids);
          others.remove(own.executorId());
          verify(own, peers.find(others));
          return null;
        });
  }

  private void verify(PeerAddress own, Map<String, PeerAddress> found) throws IOException {
    for (PeerAddress other : addresses) {
      PeerAddress expected = other.bootId().equals(own.bootId()) ? other : other.withoutFolder();
      if (!other.equals(own) && !expected.equals(found.get(other.executorId()))) {
        throw new IOException(
            own + " found " + found.get(other.executorId()) + ", not " + expected);
      }
    }
  }

  /** Looks up all executors from the first one. */
  Bytes bytesOfOneLookUp() throws IOException {
    Lookup request = new Lookup(addresses.get(0).bootId(), List.copyOf(ids));
    try {
      return new Bytes(MessageCodec.encode(request).length, ask(0, request).length);
    } catch (Exception e) {
      throw new IOException("the driver did not answer: " + e, e);
    }
  }

  private byte[] ask(int number, ToDriver message) throws Exception {
    return (byte[]) contexts.get(number).ask(MessageCodec.encode(message));
  }

  /** What one executor does. */
  private interface Action {
    Void run(int number) throws Exception;
  }

  private double each(Action action) throws IOException, InterruptedException {
    long start = System.nanoTime();
    List<Future<Void>> running =
        IntStream.range(0, addresses.size())
            .mapToObj(number -> threads.submit(() -> action.run(number)))
            .toList();
    try {
      for (Future<Void> one : running) {
        long left = DEADLINE.toNanos() - (System.nanoTime() - start);
        Void unused = one.get(left, TimeUnit.NANOSECONDS);
      }
    } catch (ExecutionException e) {
      throw new IOException("a fake executor failed: " + e.getCause(), e.getCause());
    } catch (TimeoutException e) {
      throw new IOException(
          "the driver did not answer all executors in " + DEADLINE.toSeconds() + " s", e);
    }
    return (System.nanoTime() - start) / 1e9;
  }

  @Override
  public void close() {
    threads.shutdownNow();
    rpc.shutdown();
    rpc.awaitTermination();
  }
}
