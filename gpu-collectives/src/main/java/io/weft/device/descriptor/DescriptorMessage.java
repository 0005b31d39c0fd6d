package io.weft.device.descriptor;

import io.weft.memory.Memory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * One message with one descriptor: the struct msghdr of 64-bit Linux and its contents, in one block
 * of native memory. Used by one thread at a time.
 */
final class DescriptorMessage implements AutoCloseable {
  private static final int BODY_BYTES = 16;
  private static final int MOST_DESCRIPTORS = 2;

  private static final long VECTOR = 16;
  private static final long VECTORS = 24;
  private static final long CONTROL = 32;
  private static final long CONTROL_BYTES = 40;
  private static final long FLAGS = 48;
  private static final long HEADER_BYTES = 56;

  private static final long VECTOR_AT = HEADER_BYTES;
  private static final long BODY_AT = VECTOR_AT + 16;
  private static final long CONTROL_AT = BODY_AT + BODY_BYTES;
  private static final long CONTROL_HEAD = 16;
  private static final long BYTES = CONTROL_AT + CONTROL_HEAD + 4 * MOST_DESCRIPTORS;

  private static final int SOCKET_LEVEL = 1;
  private static final int RIGHTS = 1;
  private static final int CUT_OFF = 0x8;
  private static final int DONT_WAIT = 0x40;
  private static final int NO_SIGNAL = 0x4000;
  private static final int CLOSE_ON_EXEC = 0x40000000;

  private final long address = Memory.allocate(BYTES);

  private DescriptorMessage(long controlBytes) {
    Memory.setMemory(address, BYTES, (byte) 0);
    Memory.putLong(address + VECTOR, address + VECTOR_AT);
    Memory.putLong(address + VECTORS, 1);
    Memory.putLong(address + VECTOR_AT, address + BODY_AT);
    Memory.putLong(address + VECTOR_AT + 8, BODY_BYTES);
    Memory.putLong(address + CONTROL, address + CONTROL_AT);
    Memory.putLong(address + CONTROL_BYTES, controlBytes);
  }

  /** Creates a message to send. */
  static DescriptorMessage with(byte[] body, Descriptor descriptor) {
    int number = descriptor.number();
    DescriptorMessage message = new DescriptorMessage(CONTROL_HEAD + 8);
    long control = message.address + CONTROL_AT;
    Memory.copyFrom(body, Memory.BYTE_ARRAY, message.address + BODY_AT, BODY_BYTES);
    Memory.putLong(control, CONTROL_HEAD + 4);
    Memory.putInt(control + 8, SOCKET_LEVEL);
    Memory.putInt(control + 12, RIGHTS);
    Memory.putInt(control + CONTROL_HEAD, number);
    return message;
  }

  /** Creates a message to receive into. */
  static DescriptorMessage empty() {
    return new DescriptorMessage(BYTES - CONTROL_AT);
  }

  /** Sends the message; a full socket is an error. */
  void send(int socket, String to) {
    long sent = LibcFunctions.sendmsg(socket, address, DONT_WAIT | NO_SIGNAL);
    LibcFunctions.check(sent, "sending a descriptor to " + to);
  }

  /**
   * Receives a message.
   *
   * @return the descriptors of a message with this body, at most two. For any other message the
   *     descriptors are closed and the list is empty
   */
  List<Descriptor> receive(int socket, byte[] body) {
    long received = LibcFunctions.recvmsg(socket, address, DONT_WAIT | CLOSE_ON_EXEC);
    if (received < 0) {
      return List.of();
    }
    List<Descriptor> descriptors = descriptors();
    byte[] arrived = new byte[BODY_BYTES];
    Memory.copyTo(address + BODY_AT, arrived, Memory.BYTE_ARRAY, BODY_BYTES);
    if (received == BODY_BYTES && Arrays.equals(arrived, body)) {
      requireWhole(descriptors);
      return descriptors;
    }
    descriptors.forEach(Descriptor::close);
    return List.of();
  }

  /** Checks that the system did not omit a descriptor because the process has too many. */
  private void requireWhole(List<Descriptor> descriptors) {
    if (descriptors.isEmpty() && (Memory.getInt(address + FLAGS) & CUT_OFF) != 0) {
      throw new UncheckedIOException(
          new IOException("this process cannot open a received descriptor: too many are open"));
    }
  }

  private List<Descriptor> descriptors() {
    List<Descriptor> descriptors = new ArrayList<>();
    long control = address + CONTROL_AT;
    boolean isThere =
        Memory.getLong(address + CONTROL_BYTES) >= CONTROL_HEAD + 4
            && Memory.getInt(control + 8) == SOCKET_LEVEL
            && Memory.getInt(control + 12) == RIGHTS;
    long count = isThere ? (Memory.getLong(control) - CONTROL_HEAD) / 4 : 0;
    for (int i = 0; i < count; i++) {
      descriptors.add(Descriptor.of(Memory.getInt(control + CONTROL_HEAD + 4L * i)));
    }
    return descriptors;
  }

  @Override
  public void close() {
    Memory.free(address);
  }
}
