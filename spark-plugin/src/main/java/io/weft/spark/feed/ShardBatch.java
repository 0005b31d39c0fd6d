package io.weft.spark.feed;

import io.weft.device.Device;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.feed.EpochSteps.BatchReferences;
import io.weft.spark.feed.arrow.ArrowMemory.BatchRoot;
import io.weft.tensor.Tensor;
import io.weft.tensor.dlpack.Dlpack;
import io.weft.tensor.dlpack.DlpackForm;
import io.weft.tensor.dlpack.DlpackTensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.arrow.vector.VectorSchemaRoot;

/** A batch of a shard. Its views are for the task's thread, leases for any thread. */
final class ShardBatch implements FeedBatch, EpochSteps.Held {
  private final FeedShard shard;
  private final FeedShard.ShardChunk chunk;
  private final BatchReferences holds = new BatchReferences(this::closeArrow);
  private BatchRoot arrow;

  ShardBatch(FeedShard shard, FeedShard.ShardChunk chunk) {
    this.shard = shard;
    this.chunk = chunk;
  }

  @Override
  public int rows() {
    return chunk.view().rows();
  }

  @Override
  public Tensor tensor(String column) {
    ChunkView view = view();
    return shard.tensor(column).in(view);
  }

  @Override
  public ByteBuffer byteBuffer(String column) {
    return tensor(column).byteBuffer().asReadOnlyBuffer().order(ByteOrder.nativeOrder());
  }

  @Override
  public VectorSchemaRoot arrow() {
    ChunkView view = view();
    synchronized (holds) {
      if (arrow == null || arrow.isCleared()) {
        arrow = shard.arrow().root(shard.spec().schema(), view, () -> {});
      }
      return arrow;
    }
  }

  @Override
  public void exportTo(long arrayAddress, long schemaAddress) {
    FeedLease lease = retain();
    try {
      shard
          .arrow()
          .export(shard.spec().schema(), view(), lease::close, arrayAddress, schemaAddress);
    } catch (RuntimeException | Error e) {
      lease.close();
      throw e;
    }
  }

  @Override
  public long dlpack(String column, DlpackForm form) {
    Tensor tensor = tensor(column);
    FeedLease lease = retain();
    shard.lend();
    Runnable end =
        () -> {
          lease.close();
          shard.takeBack();
        };
    try {
      return Dlpack.export(
          form, new DlpackTensor(tensor.type(), tensor.address(), Device.HOST, true), end);
    } catch (RuntimeException | Error e) {
      end.run();
      throw e;
    }
  }

  @Override
  public boolean inPlace() {
    return chunk.inPlace();
  }

  /** Returns the chunk; the batch must still be held. */
  private ChunkView view() {
    if (shard.isClosed()) {
      throw new IllegalStateException("the batch's task has ended, and its memory was freed");
    }
    holds.require();
    return chunk.view();
  }

  @Override
  public FeedLease retain() {
    return holds.retain();
  }

  @Override
  public void release() {
    holds.release();
  }

  private void closeArrow() {
    synchronized (holds) {
      if (arrow != null) {
        arrow.close();
        arrow = null;
      }
    }
  }
}
