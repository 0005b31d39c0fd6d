package io.weft.support;

import io.weft.shuffle.peer.PeerAddress;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * A proxy between a reader and a block server. It records all bytes, and can cut or slow
 * connections.
 */
public final class Tap implements AutoCloseable {
  private static final long NEVER = Long.MAX_VALUE;
  private static final int SLOW_BUFFER_BYTES = 64 << 10;

  private final PeerAddress target;
  private final ServerSocket server;
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final Queue<Socket> sockets = new ConcurrentLinkedQueue<>();
  private final Set<Long> flips = ConcurrentHashMap.newKeySet();
  private final AtomicLong answered = new AtomicLong();
  private final Queue<Long> cuts = new ConcurrentLinkedQueue<>();
  private final ByteArrayOutputStream passed = new ByteArrayOutputStream();
  private final AtomicInteger connections = new AtomicInteger();
  private volatile CountDownLatch cutting = new CountDownLatch(0);
  private volatile long answersPerSecond = NEVER;

  public Tap(PeerAddress target) throws IOException {
    this.target = target;
    this.server = new ServerSocket(0, 50, InetAddress.getByName("localhost"));
    threads.execute(this::accept);
  }

  /** Cuts the next connections, each after its number of answer bytes. */
  public Tap cutAfter(long... bytes) {
    for (long count : bytes) {
      cuts.add(count);
    }
    return this;
  }

  /** As {@link #cutAfter}, but the connection stays open without answers until {@link #cut}. */
  public Tap stopAfter(long bytes) {
    cutting = new CountDownLatch(1);
    return cutAfter(bytes);
  }

  /** Cuts the connection that has stopped. */
  public void cut() {
    cutting.countDown();
  }

  /** Inverts answer bytes at these offsets, counted over all connections. */
  public Tap flipAt(long... bytes) {
    for (long at : bytes) {
      flips.add(at);
    }
    return this;
  }

  /** Limits the answer bytes per second. */
  public Tap slow(long bytesPerSecond) {
    answersPerSecond = bytesPerSecond;
    return this;
  }

  /** The address of the target through this proxy. */
  public PeerAddress address() {
    return new PeerAddress(
        target.executorId(),
        target.incarnation(),
        "localhost",
        server.getLocalPort(),
        target.folder(),
        target.token(),
        target.bootId(),
        target.version());
  }

  public int connections() {
    return connections.get();
  }

  /** All bytes so far, in both directions, one character per byte. */
  public String passed() {
    synchronized (passed) {
      return passed.toString(StandardCharsets.ISO_8859_1);
    }
  }

  private void accept() {
    while (!server.isClosed()) {
      try {
        Socket reader = server.accept();
        Socket owner = connect();
        reader.setTcpNoDelay(true);
        owner.setTcpNoDelay(true);
        sockets.add(reader);
        sockets.add(owner);
        connections.incrementAndGet();
        Long cut = cuts.poll();
        threads.execute(() -> pump(reader, owner, NEVER, false));
        threads.execute(() -> pump(owner, reader, cut == null ? NEVER : cut, true));
      } catch (IOException e) {
        // The test has ended.
      }
    }
  }

  /** Connects with small buffers on a slow link, so that unsent bytes stay with the owner. */
  private Socket connect() throws IOException {
    Socket owner = new Socket();
    if (answersPerSecond < NEVER) {
      owner.setReceiveBufferSize(SLOW_BUFFER_BYTES);
    }
    owner.connect(new InetSocketAddress(target.host(), target.port()));
    return owner;
  }

  private void pump(Socket from, Socket to, long most, boolean answers) {
    byte[] buffer = new byte[8192];
    long left = most;
    try (from;
        to) {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      while (left > 0) {
        int count = in.read(buffer, 0, (int) Math.min(buffer.length, left));
        if (count < 0) {
          return;
        }
        left -= count;
        if (answers) {
          flip(buffer, count);
        }
        synchronized (passed) {
          passed.write(buffer, 0, count);
        }
        if (answers) {
          LockSupport.parkNanos((long) (1e9 * count / answersPerSecond));
        }
        out.write(buffer, 0, count);
      }
      cutting.await();
    } catch (IOException e) {
      // The other direction has ended first.
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void flip(byte[] buffer, int count) {
    long first = answered.getAndAdd(count);
    for (long at : flips) {
      if (at >= first && at < first + count) {
        buffer[(int) (at - first)] ^= (byte) 0xff;
      }
    }
  }

  @Override
  public void close() throws IOException {
    server.close();
    for (Socket socket : sockets) {
      socket.close();
    }
    threads.shutdownNow();
  }
}
