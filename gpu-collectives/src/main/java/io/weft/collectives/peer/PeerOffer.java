package io.weft.collectives.peer;

import io.weft.device.cuda.IpcHandle;
import java.nio.ByteBuffer;

/**
 * The message with which a rank offers its memory to the others.
 *
 * <pre> long address | long address of the signals | int length | handle | handle of the signals
 * </pre>
 *
 * @param memory for other processes
 * @param address in its own process
 * @param signals beside the memory
 * @param signalsAddress in its own process
 */
record PeerOffer(IpcHandle memory, long address, IpcHandle signals, long signalsAddress) {
  byte[] encode() {
    byte[] first = memory.encode();
    byte[] second = signals.encode();
    return ByteBuffer.allocate(2 * Long.BYTES + Integer.BYTES + first.length + second.length)
        .putLong(address)
        .putLong(signalsAddress)
        .putInt(first.length)
        .put(first)
        .put(second)
        .array();
  }

  static PeerOffer decode(byte[] message) {
    ByteBuffer in = ByteBuffer.wrap(message);
    long address = in.getLong();
    long signalsAddress = in.getLong();
    byte[] first = new byte[in.getInt()];
    in.get(first);
    byte[] second = new byte[in.remaining()];
    in.get(second);
    return new PeerOffer(
        IpcHandle.decode(first), address, IpcHandle.decode(second), signalsAddress);
  }
}
