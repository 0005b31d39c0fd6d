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
  private final DeviceUploader uploader;
  private final Queue<Batch> ready = new ArrayDeque<>();
  private Batch current;

  /** Of the host, with rows from {@code nextRow} on that are not uploaded yet. */
  private ColumnarBatch rest;

  private int nextRow;
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
    if (ready.isEmpty()) {
      closeCurrent(); // A task may go on for long, and what it holds cannot be spilled.
    }
    return !ready.isEmpty();
  }

  /**
   * Goes on with the batch of the host until a table is full: with all of its tables at a time a
   * task would wait for memory that it holds itself.
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

  /** A batch on the device goes behind what was gathered before, and is the last one asked for. */
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
