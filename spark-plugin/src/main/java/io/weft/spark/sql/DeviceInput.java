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
 * The batches of a task on the GPU, in order. Batches on the host are uploaded, several at a time.
 * A batch is valid until the next call of {@code hasNext} or {@code next}. All memory is released
 * when the task ends. For one task thread.
 */
final class DeviceInput extends AbstractIterator<DeviceInput.Batch> {
  private final Iterator<ColumnarBatch> input;
  private final StructType schema;
  private final DeviceUploader uploader;
  private final Queue<Batch> ready = new ArrayDeque<>();
  private Batch current;

  /** A batch on the host whose rows from {@code nextRow} on are not uploaded yet. */
  private ColumnarBatch rest;

  private int nextRow;
  private boolean ended;

  /**
   * A batch and its table.
   *
   * @param isUploaded whether this iterator closes it
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
    this.uploader =
        new DeviceUploader(
            device,
            schema,
            "task-%d-uploads".formatted(context.taskAttemptId()),
            context::killTaskIfInterrupted,
            table -> add(DeviceBatch.columns(device, table, schema), true));
  }

  /** Creates the input of the running task. */
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
    if (ready.isEmpty()) {
      closeCurrent(); // The task may run for long, and a table in use cannot be spilled.
    }
    return !ready.isEmpty();
  }

  /**
   * Uploads rows of the host's batch until one table is full. With all tables at once, a task could
   * wait for memory that it holds itself.
   */
  private void fill() throws IOException {
    closeCurrent();
    if (rest != null) {
      nextRow = uploader.append(rest, nextRow);
      rest = nextRow < rest.numRows() ? rest : null;
    } else {
      nextBatch();
    }
  }

  /**
   * Reads the next input batch. A batch on the GPU follows the gathered rows, and no further batch
   * is read before it is returned.
   */
  private void nextBatch() throws IOException {
    if (!input.hasNext()) {
      ended = true;
      uploader.flush();
      return;
    }
    ColumnarBatch batch = input.next();
    if (DeviceBatch.of(batch, schema).isPresent()) {
      uploader.flush();
      add(batch, false);
    } else if (batch.numRows() > 0) {
      rest = batch;
      nextRow = 0;
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
