package io.weft.spark.feed;

import io.weft.collectives.Communicator;
import io.weft.device.Device;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaLane;
import io.weft.spark.collectives.WeftCollectives;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.feed.DeviceShard.ExchangedBatch;
import io.weft.spark.feed.EpochSteps.BatchReferences;
import io.weft.spark.feed.RankGpu.GpuShardBatches;
import io.weft.spark.feed.arrow.ArrowMemory.BatchRoot;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.tensor.Tensor;
import io.weft.tensor.dlpack.Dlpack;
import io.weft.tensor.dlpack.DlpackForm;
import io.weft.tensor.dlpack.DlpackTensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.TaskContext;

/** A rank's task in {@link WeftFeed#train}. For the task's thread. */
final class RankTask implements FeedTask, AutoCloseable {
  private final FeedShard shard;
  private final BarrierTaskContext context;
  private final StepDump dump;
  private ShardBatches open;
  private RankGpu gpu;
  private GpuFeedBatches openOnGpu;

  RankTask(FeedShard shard, BarrierTaskContext context) {
    this.shard = shard;
    this.context = context;
    this.dump = new StepDump(shard);
  }

  @Override
  public Communicator communicator() {
    return WeftCollectives.communicator(context);
  }

  @Override
  public int rank() {
    return shard.rank();
  }

  @Override
  public int ranks() {
    return shard.spec().ranks();
  }

  @Override
  public long steps() {
    return shard.steps();
  }

  @Override
  public FeedBatches batches(int epoch) {
    requireEpoch(epoch);
    if (shard.onDevice() != null) {
      throw new IllegalStateException(
          "the rows of this feed moved from GPU to GPU and stay there: see gpuBatches");
    }
    closeEpoch();
    open = new ShardBatches(shard, epoch, context, dump);
    return open;
  }

  private static void requireEpoch(int epoch) {
    if (epoch < 0) {
      throw new IllegalArgumentException("epochs are counted from 0, not " + epoch);
    }
  }

  @Override
  public Optional<String> gpuObstacle() {
    return ExecutorGpu.current().obstacle();
  }

  @Override
  public GpuFeedBatches gpuBatches(int epoch) {
    requireEpoch(epoch);
    closeEpoch();
    openOnGpu =
        shard.onDevice() == null ? uploads(epoch) : new DeviceBatches(shard, epoch, context, dump);
    return openOnGpu;
  }

  private GpuFeedBatches uploads(int epoch) {
    if (gpu == null) {
      gpu = RankGpu.open(shard, context);
    }
    return new GpuShardBatches(gpu, shard, epoch, context, dump);
  }

  /** Runs the rank's function with this task as its argument. */
  <T> T run(FeedFunction<T> function) throws Exception {
    try {
      return function.run(this);
    } catch (Exception | Error e) {
      dump.failed(e);
      throw e;
    }
  }

  @Override
  public void close() {
    closeEpoch();
    dump.close();
    if (gpu != null) {
      gpu.close();
    }
  }

  private void closeEpoch() {
    if (open != null) {
      open.close();
    }
    if (openOnGpu != null) {
      openOnGpu.close();
    }
  }

  /** One epoch over a shard. For its task's thread. */
  static final class ShardBatches extends EpochSteps<ShardBatches.ShardBatch>
      implements FeedBatches {
    private final FeedShard shard;
    private final int epoch;
    private final StepDump dump;
    private final Iterator<FeedShard.ShardChunk> chunks;

    ShardBatches(FeedShard shard, int epoch, TaskContext context, StepDump dump) {
      super(context);
      this.shard = shard;
      this.epoch = epoch;
      this.dump = dump;
      this.chunks = shard.epoch(epoch).iterator();
    }

    @Override
    boolean hasMore() {
      return chunks.hasNext();
    }

    @Override
    ShardBatch take(int step) {
      FeedShard.ShardChunk chunk = chunks.next();
      dump.step(epoch, step, chunk);
      return new ShardBatch(shard, chunk);
    }

    /** A batch of a shard. Its views are for the task's thread, leases for any thread. */
    static final class ShardBatch implements FeedBatch, EpochSteps.Held {
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
  }

  /** One epoch over a shard in device memory. For its task's thread. */
  static final class DeviceBatches extends EpochSteps<DeviceBatches.DeviceFeedBatch>
      implements GpuFeedBatches {
    private final DeviceShard shard;
    private final int epoch;
    private final StepDump dump;
    private final List<ExchangedBatch> batches;
    private final Iterator<Integer> order;

    DeviceBatches(FeedShard shard, int epoch, TaskContext context, StepDump dump) {
      super(context);
      this.epoch = epoch;
      this.dump = dump;
      this.shard = shard.onDevice();
      this.batches = this.shard.batches(shard.plan(), shard.rank());
      this.order = shard.plan().order(shard.rank(), epoch).iterator();
    }

    @Override
    boolean hasMore() {
      return order.hasNext();
    }

    @Override
    DeviceFeedBatch take(int step) {
      ExchangedBatch batch = batches.get(order.next());
      dump.stepOnDevice(epoch, step, batch);
      return new DeviceFeedBatch(shard, batch);
    }

    /**
     * A batch in the device memory where the exchange put it. The shard owns the memory, so the end
     * of the last hold only ends the right to use it.
     */
    static final class DeviceFeedBatch extends GpuBatchView {
      private final DeviceShard shard;
      private final ExchangedBatch batch;

      DeviceFeedBatch(DeviceShard shard, ExchangedBatch batch) {
        super(shard.device().gpu(), shard.layout(), true, () -> {});
        this.shard = shard;
        this.batch = batch;
      }

      @Override
      public int rows() {
        return batch.rows();
      }

      @Override
      long address(GpuBatchLayout.Place place) {
        return batch.addresses().get(shard.layout().columns().indexOf(place));
      }

      @Override
      public Event ready() {
        return HostEvent.completed("the exchange of a batch");
      }

      /** All rows have been on the device since the task began. */
      @Override
      public void orderBefore(long stream) {
        holds().require();
      }

      @Override
      void usedUntil(Event event) {
        batch.usedUntil(event);
      }

      @Override
      CudaLane lane() {
        return shard.lane().lane();
      }
    }
  }
}
