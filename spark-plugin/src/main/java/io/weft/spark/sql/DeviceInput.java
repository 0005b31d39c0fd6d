package io.weft.spark.sql;

import io.weft.spark.gpu.DeviceBatch;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.DeviceUploader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.NoSuchElementException;
import java.util.Queue;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The batches of a task on the device, in their order: those that are there as they are, those on
 * the host uploaded, several at a time. A batch is valid until the next call of {@code hasNext} or
 * {@code next}, and all are let go of when the task ends. For one task thread.
 */
final class DeviceInput extends AbstractIterator<DeviceInput.Batch> {
  private final Iterator<ColumnarBatch> input;
  private final StructType schema;
  private final DeviceExchange device;
  private final DeviceUploader uploader;
  private final Queue<Batch> ready = new ArrayDeque<>();
  private Batch current;

  /** Being appended; null in between. */
  private ColumnarBatch onHost;

  private int row;
  private boolean ended;

  /**
   * A batch and its table.
   *
   * @param isUploaded whether it is this iterator's to close
   */
  record Batch(ColumnarBatch batch, DeviceBatch table, boolean isUploaded) {
    void close() {
      if (isUploaded) {
        batch.close();
      }
    }
  }

  private DeviceInput(
      Iterator<ColumnarBatch> input,
      StructType schema,
      DeviceExchange device,
      TaskContext context) {
    this.input = input;
    this.schema = schema;
    this.device = device;
    this.uploader =
        new DeviceUploader(
            device,
            schema,
            "task-%d-uploads".formatted(context.taskAttemptId()),
            context::killTaskIfInterrupted,
            table -> add(DeviceBatch.columns(device, table, schema), true));
  }

  /** The batches of the running task. */
  static DeviceInput of(Iterator<ColumnarBatch> batches, StructType schema, DeviceExchange device) {
    TaskContext context = TaskContext.get();
    DeviceInput input = new DeviceInput(batches, schema, device, context);
    context.addTaskCompletionListener((TaskCompletionListener) end -> input.close());
    return input;
  }

  private void add(ColumnarBatch batch, boolean isUploaded) {
    ready.add(new Batch(batch, DeviceBatch.of(batch).orElseThrow(), isUploaded));
  }

  @Override
  public boolean hasNext() {
    try {
      while (ready.isEmpty() && !ended) {
        fill();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return !ready.isEmpty();
  }

  /**
   * Goes on until there is a table or the input has given its next batch. A batch on the host is
   * valid until the input is asked for another, so its rows are appended as tables are wanted.
   */
  private void fill() throws IOException {
    closeCurrent();
    if (onHost != null) {
      row = uploader.append(onHost, row);
      onHost = row < onHost.numRows() ? onHost : null;
    } else if (!input.hasNext()) {
      ended = true;
      uploader.flush();
    } else {
      take(input.next());
    }
  }

  /** A batch on the device goes behind what was gathered before. */
  private void take(ColumnarBatch batch) throws IOException {
    if (DeviceBatch.of(batch).isPresent()) {
      uploader.flush();
      add(batch, false);
    } else {
      onHost = batch;
      row = 0;
    }
  }

  @Override
  public Batch next() {
    if (!hasNext()) {
      throw new NoSuchElementException("there are no more batches");
    }
    closeCurrent();
    current = ready.remove();
    return current;
  }

  private void closeCurrent() {
    if (current != null) {
      current.close();
      current = null;
    }
  }

  private void close() {
    closeCurrent();
    ready.forEach(Batch::close);
    ready.clear();
    uploader.close();
  }
}
