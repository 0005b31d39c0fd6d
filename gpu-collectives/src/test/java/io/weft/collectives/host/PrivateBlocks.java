package io.weft.collectives.host;

import io.weft.collectives.bootstrap.RankFolder.Liveness;
import io.weft.collectives.host.ControlBlock.ControlLayout;
import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.collectives.host.HostOptions.KernelCopy;
import io.weft.collectives.host.LocalPeers.RingLink;
import io.weft.collectives.host.MessageChannel.ByteLink.Traffic;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Control segments of a host's ranks in memory of this process, for tests of the classes that use
 * them.
 */
final class PrivateBlocks {
  private final List<ByteBuffer> memory = new ArrayList<>();
  private final ControlBlock[] blocks;
  private final BufferSizes sizes;

  PrivateBlocks(int ranks, BufferSizes sizes) {
    this.sizes = sizes;
    ControlLayout layout = new ControlLayout(sizes, ranks);
    blocks = new ControlBlock[ranks];
    for (int rank = 0; rank < ranks; rank++) {
      memory.add(ByteBuffer.allocateDirect(Math.toIntExact(layout.bytes())));
      blocks[rank] = new ControlBlock(Memory.addressOf(memory.get(rank)), layout);
    }
  }

  ControlBlock block(int rank) {
    return blocks[rank];
  }

  ControlBlock[] all() {
    return blocks.clone();
  }

  /** The host from the view of a rank; all ranks are alive. */
  LocalPeers localPeers(int me) {
    List<LocalPeers.Peer> all = new ArrayList<>();
    for (int rank = 0; rank < blocks.length; rank++) {
      all.add(new LocalPeers.Peer(rank, blocks[rank], Liveness.OWN, 0));
    }
    return new LocalPeers(me, all, KernelCopy.NEVER, false);
  }

  RingLink link(int from, int to) {
    return localPeers(from).link(to, Traffic.PAIRS, sizes.ringBytes());
  }
}
