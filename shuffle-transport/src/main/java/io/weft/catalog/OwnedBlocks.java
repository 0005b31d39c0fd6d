package io.weft.catalog;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicBoolean;

/** A hold on this executor's blocks of one shuffle. Thread-safe. */
public final class OwnedBlocks implements ShuffleHold {
  private final ShuffleOutputs shuffle;
  private final BlockCatalog catalog;
  private final AtomicBoolean open = new AtomicBoolean(true);

  OwnedBlocks(ShuffleOutputs shuffle, BlockCatalog catalog) {
    this.shuffle = shuffle;
    this.catalog = catalog;
  }

  /**
   * Finds a map output, with access to its memory as buffers.
   *
   * @throws IOException if there is no output with this key
   */
  public OwnedOutput owned(BlockKey key) throws IOException {
    OwnedOutput found = shuffle == null ? null : shuffle.get(key.mapId());
    if (found == null) {
      throw new IOException(key + " is not here: it was removed, or never published");
    }
    return found;
  }

  @Override
  public LocatedOutput output(BlockKey key) throws IOException {
    return owned(key).located();
  }

  @Override
  public void close() {
    if (shuffle != null && open.getAndSet(false)) {
      shuffle.release();
      catalog.reclaimAfter(shuffle);
    }
  }
}
