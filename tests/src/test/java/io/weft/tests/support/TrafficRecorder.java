package io.weft.tests.support;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.store.ExecutorFolder;
import io.weft.spark.runtime.MessageCodec;
import io.weft.spark.runtime.Messages.Announce;
import io.weft.spark.runtime.Messages.Found;
import io.weft.spark.runtime.Messages.Lookup;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.Serializable;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.internal.plugin.PluginContextImpl;
import org.awaitility.Awaitility;

/**
 * Records all data that executors send each other over TCP. It tells the driver that each executor
 * listens here, and forwards the data. It must be opened before the first shuffle, as executors
 * look up each other's address only once.
 */
public final class TrafficRecorder implements AutoCloseable {
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final Queue<AutoCloseable> open = new ConcurrentLinkedQueue<>();
  private final ByteArrayOutputStream passed = new ByteArrayOutputStream();

  /** Taps the executors with these ids. */
  public TrafficRecorder(String... executorIds) throws Exception {
    for (String id : executorIds) {
      PeerAddress real = realAddress(id);
      ServerSocket listening = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
      open.add(listening);
      threads.execute(() -> accept(listening, real));
      PeerAddress tapped =
          new PeerAddress(
              id,
              real.incarnation(),
              "127.0.0.1",
              listening.getLocalPort(),
              real.folder(),
              real.token(),
              real.bootId(),
              real.version());
      Object unused = ask(new Announce(tapped, null));
    }
  }

  /** The real address of an executor; waits until the executor has announced it. */
  public static PeerAddress realAddress(String executorId) {
    return Awaitility.await("executor " + executorId + " has announced itself")
        .atMost(Duration.ofMinutes(3))
        .until(() -> find(executorId), addresses -> !addresses.isEmpty())
        .get(0);
  }

  private static List<PeerAddress> find(String executorId) throws Exception {
    String kernel = ExecutorFolder.currentBootId();
    return ((Found) ask(new Lookup(kernel, List.of(executorId)))).addresses();
  }

  private static Object ask(Serializable message) throws Exception {
    SparkEnv env = SparkEnv.get();
    PluginContext driver =
        new PluginContextImpl(
            Sessions.PLUGIN, env.rpcEnv(), env.metricsSystem(), env.conf(), "driver", Map.of());
    return MessageCodec.decode(driver.ask(MessageCodec.encode(message)));
  }

  /** Number of bytes so far. */
  public int bytes() {
    synchronized (passed) {
      return passed.size();
    }
  }

  /** Returns whether the data contained a text. */
  public boolean contains(String text) {
    synchronized (passed) {
      return passed.toString(StandardCharsets.ISO_8859_1).contains(text);
    }
  }

  private void accept(ServerSocket listening, PeerAddress real) {
    while (!listening.isClosed()) {
      try {
        Socket reader = listening.accept();
        Socket owner = new Socket(real.host(), real.port());
        open.add(reader);
        open.add(owner);
        threads.execute(() -> pump(reader, owner));
        threads.execute(() -> pump(owner, reader));
      } catch (IOException e) {
        // The test has ended.
      }
    }
  }

  private void pump(Socket from, Socket to) {
    byte[] buffer = new byte[1 << 16];
    try (from;
        to) {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
        synchronized (passed) {
          passed.write(buffer, 0, count);
        }
        out.write(buffer, 0, count);
      }
    } catch (IOException e) {
      // The other direction ended first.
    }
  }

  @Override
  public void close() throws Exception {
    for (AutoCloseable each : open) {
      each.close();
    }
    threads.shutdownNow();
  }
}
