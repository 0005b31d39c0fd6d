package io.weft.transfers;

import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PushbackInputStream;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/**
 * One direction of a connection between two ranks. Forwards the frames of the wire protocol one by
 * one, and applies faults to some of them by its seed. Used by one thread.
 */
final class FaultyConnection implements Runnable {
  /** The faults of a frame. */
  private enum Fault {
    DELAY,
    DROP,
    DUPLICATE,
    REORDER,
    CORRUPT,
    TRUNCATE,
    CLOSE
  }

  /** The greeting of the other end, and its welcome. */
  static final int GREETING_BYTES = 68;

  private static final int WELCOME_BYTES = 32;
  private static final int PURPOSE_AT = 32;
  private static final int CONTROL = 2;
  private static final int CONTROL_HEADER_BYTES = 12;
  private static final int FRAME_BYTES = 44;
  private static final int LENGTH_AT = 32;
  private static final int SUM_BYTES = 4;
  private static final int MAX_PAUSE_MILLIS = 8;

  private final FaultyArrayNetwork network;
  private final SplittableRandom random;
  private final boolean control;
  private final Socket from;
  private final Socket to;
  private final PushbackInputStream in;
  private final OutputStream out;
  private byte[] first;

  /**
   * A direction that starts with a greeting, which names the purpose.
   *
   * @param greeting as received; null for the way back, which starts with a welcome
   * @param purpose from the greeting
   */
  FaultyConnection(
      FaultyArrayNetwork network,
      SplittableRandom random,
      Socket from,
      Socket to,
      byte[] greeting,
      int purpose)
      throws IOException {
    this.network = network;
    this.random = random;
    this.control = purpose == CONTROL;
    this.from = from;
    this.to = to;
    this.in = new PushbackInputStream(from.getInputStream());
    this.out = to.getOutputStream();
    this.first = greeting;
  }

  /** The purpose of a connection, by its code. */
  static int purpose(byte[] greeting) {
    return ByteBuffer.wrap(greeting).getInt(PURPOSE_AT);
  }

  @Override
  public void run() {
    try {
      pass(first == null ? read(WELCOME_BYTES) : first);
      while (true) {
        pass(next());
      }
    } catch (EOFException e) {
      finish();
    } catch (IOException | InterruptedException e) {
      cut();
    }
  }

  /** Ends this direction; the other one may go on. */
  private void finish() {
    try {
      to.shutdownOutput();
    } catch (IOException e) {
      cut();
    }
  }

  /** Ends both directions. */
  private void cut() {
    FaultyArrayNetwork.close(from);
    FaultyArrayNetwork.close(to);
  }

  private byte[] read(int bytes) throws IOException {
    byte[] read = in.readNBytes(bytes);
    if (read.length < bytes) {
      throw new EOFException("the connection ended");
    }
    return read;
  }

  private byte[] next() throws IOException {
    byte[] header = read(control ? CONTROL_HEADER_BYTES : FRAME_BYTES);
    ByteBuffer numbers = ByteBuffer.wrap(header);
    int rest;
    if (control) {
      rest = numbers.getInt(0);
    } else {
      int bytes = (int) numbers.order(ByteOrder.nativeOrder()).getLong(LENGTH_AT);
      rest = bytes == 0 ? 0 : bytes + SUM_BYTES;
    }
    byte[] frame = Arrays.copyOf(header, header.length + rest);
    System.arraycopy(read(rest), 0, frame, header.length, rest);
    return frame;
  }

  private void pass(byte[] frame) throws IOException, InterruptedException {
    Fault fault = fault();
    if (fault == null) {
      out.write(frame);
      return;
    }
    switch (fault) {
      case DELAY -> {
        boolean unused = network.awaitEnd(pauseMillis(), TimeUnit.MILLISECONDS);
        out.write(frame);
      }
      case DROP -> {}
      case DUPLICATE -> {
        out.write(frame);
        out.write(frame);
      }
      case REORDER -> reorder(frame);
      case CORRUPT -> {
        frame[random.nextInt(frame.length)] ^= (byte) (1 << random.nextInt(8));
        out.write(frame);
      }
      case TRUNCATE -> out.write(frame, 0, random.nextInt(frame.length));
      case CLOSE -> cut();
    }
  }

  private Fault fault() {
    return network.isFault(random.nextDouble())
        ? Fault.values()[random.nextInt(Fault.values().length)]
        : null;
  }

  private int pauseMillis() {
    return 1 + random.nextInt(MAX_PAUSE_MILLIS);
  }

  /** Sends the next frame first, if it comes soon. */
  private void reorder(byte[] held) throws IOException {
    from.setSoTimeout(pauseMillis());
    try {
      int begin = in.read();
      from.setSoTimeout(0);
      if (begin >= 0) {
        in.unread(begin);
        out.write(next());
      }
    } catch (SocketTimeoutException e) {
      from.setSoTimeout(0);
    }
    out.write(held);
  }
}
