package io.weft.transfers;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.UniqueId;
import io.weft.collectives.clique.CliqueCommunicators;
import io.weft.collectives.clique.CliqueKey;
import io.weft.device.Deadline;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A proxy between the sockets of executors of this process: the rendezvous gives each executor a
 * proxy address of the other. Each direction of each connection has its own faults. They follow
 * from the seed, the two executors, the number of their communicator and the purpose of the
 * connection.
 */
final class FaultyArrayNetwork implements CliqueCommunicators.BootstrapOpener, AutoCloseable {
  private static final String ROUND_WITH_ADDRESSES = "listening";
  private static final int JOIN_MILLIS = 30_000;

  private final CliqueCommunicators.BootstrapOpener rendezvous;
  private final long seed;
  private final double faultRate;
  private final CountDownLatch end = new CountDownLatch(1);
  private final AtomicInteger faults = new AtomicInteger();
  private final AtomicInteger connections = new AtomicInteger();
  private final Map<String, Integer> met = new HashMap<>();
  private final List<Closeable> open = new ArrayList<>();
  private final List<Thread> threads = new ArrayList<>();
  private volatile boolean healed;

  /**
   * A network whose faults follow from a seed.
   *
   * @param rendezvous the real rendezvous
   * @param faultRate of frames, 0 to 1
   */
  FaultyArrayNetwork(CliqueCommunicators.BootstrapOpener rendezvous, long seed, double faultRate) {
    this.rendezvous = rendezvous;
    this.seed = seed;
    this.faultRate = faultRate;
  }

  /** The number of frames with a fault. */
  int faults() {
    return faults.get();
  }

  /** The number of connections. */
  int connections() {
    return connections.get();
  }

  /** Ends all faults. */
  void heal() {
    healed = true;
  }

  /** Whether a fault is due for a random number of 0 to 1. */
  boolean isFault(double drawn) {
    boolean fault = !healed && drawn < faultRate;
    faults.addAndGet(fault ? 1 : 0);
    return fault;
  }

  /** Waits, unless the network ends before. Returns whether it ended. */
  boolean awaitEnd(long time, TimeUnit unit) throws InterruptedException {
    return end.await(time, unit);
  }

  @Override
  public Bootstrap open(CliqueKey key, int rank) throws IOException {
    Bootstrap bootstrap = rendezvous.open(key, rank);
    String pair = key.members().get(0).process() + "-" + key.members().get(1).process();
    int number;
    synchronized (this) {
      number = met.merge(pair + " at " + rank, 1, Integer::sum);
    }
    return new Detour(bootstrap, seed + 31L * (pair + number).hashCode());
  }

  /** Replaces the address of a listening rank by a proxy's address. */
  private final class Detour implements Bootstrap {
    private final Bootstrap bootstrap;
    private final long chances;

    Detour(Bootstrap bootstrap, long chances) {
      this.bootstrap = bootstrap;
      this.chances = chances;
    }

    @Override
    public UniqueId id() {
      return bootstrap.id();
    }

    @Override
    public int rank() {
      return bootstrap.rank();
    }

    @Override
    public int nranks() {
      return bootstrap.nranks();
    }

    @Override
    public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
      boolean address = round.equals(ROUND_WITH_ADDRESSES) && mine[0] == 0;
      return bootstrap.exchange(round, address ? replaced(mine, chances) : mine, deadline);
    }

    @Override
    public void close() {
      bootstrap.close();
    }
  }

  /** A byte, then the host name and the port of a listening rank. */
  private byte[] replaced(byte[] message, long chances) {
    try {
      DataInputStream in = new DataInputStream(new ByteArrayInputStream(message));
      byte kind = in.readByte();
      String host = in.readUTF();
      int port = in.readInt();
      ServerSocket proxy = new ServerSocket(0, 50, InetAddress.getByName(host));
      start(() -> accept(proxy, port, chances), proxy);
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      DataOutputStream out = new DataOutputStream(bytes);
      out.writeByte(kind);
      out.writeUTF(host);
      out.writeInt(proxy.getLocalPort());
      return bytes.toByteArray();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Runs until its sockets are closed. */
  private void start(Runnable work, Closeable... used) {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    synchronized (this) {
      thread.setName("weft-test-network-" + threads.size());
      threads.add(thread);
      open.addAll(List.of(used));
    }
    if (end.getCount() == 0) {
      List.of(used).forEach(FaultyArrayNetwork::close);
    }
    thread.start();
  }

  private void accept(ServerSocket proxy, int port, long chances) {
    try {
      while (true) {
        Socket client = proxy.accept();
        start(() -> connect(client, proxy.getInetAddress(), port, chances), client);
      }
    } catch (IOException e) {
      // The round is over.
    }
  }

  private void connect(Socket client, InetAddress host, int port, long chances) {
    Socket server = new Socket();
    try {
      byte[] greeting = client.getInputStream().readNBytes(FaultyConnection.GREETING_BYTES);
      if (greeting.length < FaultyConnection.GREETING_BYTES) {
        throw new IOException("no greeting came");
      }
      server = new Socket(host, port);
      client.setTcpNoDelay(true);
      server.setTcpNoDelay(true);
      connections.incrementAndGet();
      int purpose = FaultyConnection.purpose(greeting);
      SplittableRandom random = new SplittableRandom(chances + purpose);
      FaultyConnection back =
          new FaultyConnection(this, random.split(), server, client, null, purpose);
      start(back, server);
      new FaultyConnection(this, random, client, server, greeting, purpose).run();
    } catch (IOException e) {
      close(client);
      close(server);
    }
  }

  static void close(Closeable socket) {
    try {
      socket.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Ends all connections and drops frames under way. */
  @Override
  public void close() throws InterruptedException {
    end.countDown();
    List<Thread> all;
    synchronized (this) {
      open.forEach(FaultyArrayNetwork::close);
      all = List.copyOf(threads);
    }
    for (Thread thread : all) {
      thread.join(JOIN_MILLIS);
      if (thread.isAlive()) {
        throw new IllegalStateException("the network still runs: " + thread);
      }
    }
  }
}
