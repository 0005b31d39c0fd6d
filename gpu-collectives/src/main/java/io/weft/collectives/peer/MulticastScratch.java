package io.weft.collectives.peer;

import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.VirtualMemory;

/**
 * Device memory that a multicast window needs beside the caller's: a few bytes for the barriers,
 * and bindable memory with the slots for bytes that do not fill a whole unit. Confined to the
 * thread of the window.
 */
final class MulticastScratch {
  private static final int LOBBY_BYTES = 512;

  private final CudaMemoryPool lobbyPool;
  private final CudaMemoryPool endsPool;
  private final CudaMemory lobby;
  private final CudaMemory ends;

  MulticastScratch(CudaDevice device) {
    VirtualMemory source = VirtualMemory.forMulticast(device);
    this.lobbyPool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, LOBBY_BYTES);
    this.endsPool = CudaMemoryPool.open(device, source, source.granularity());
    this.lobby = lobbyPool.take(LOBBY_BYTES);
    try {
      this.ends = endsPool.take(MulticastExchange.ENDS_ROOM);
    } catch (RuntimeException e) {
      closeLobby();
      endsPool.close();
      throw e;
    }
  }

  CudaMemory lobby() {
    return lobby;
  }

  CudaMemory ends() {
    return ends;
  }

  /** Frees the slots, which are no longer bound. */
  void closeEnds() {
    ends.close();
    endsPool.close();
  }

  /** Frees the memory of the barriers, which no rank has mapped any more. */
  void closeLobby() {
    lobby.close();
    lobbyPool.close();
  }
}
