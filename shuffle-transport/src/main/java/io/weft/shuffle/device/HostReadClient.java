package io.weft.shuffle.device;

import io.weft.memory.Memory;
import io.weft.shuffle.device.DeviceBlockMessages.HostReadMessages;
import io.weft.shuffle.store.BlockKey;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Copies device blocks of other executors into host memory, also on executors without a GPU. This
 * is slower than the path between GPUs, and needs device memory for only one table at a time.
 * Stateless and thread-safe; callers wait.
 */
public final class HostReadClient {
  private final DeviceBlockClient.Requests requests;
  private final String reader;

  /**
   * Creates a client.
   *
   * @param reader id of this executor, for messages
   */
  public HostReadClient(DeviceBlockClient.Requests requests, String reader) {
    this.requests = requests;
    this.reader = reader;
  }

  /**
   * Which map outputs an executor has on its GPU.
   *
   * @throws IOException if the executor does not answer
   */
  public Set<BlockKey> held(String executor, List<BlockKey> keys)
      throws IOException, InterruptedException {
    byte[] answer = requests.send(executor, HostReadMessages.held(keys));
    if (answer.length != keys.size()) {
      throw new IOException(
          "executor %s answers %d bytes for %d map outputs"
              .formatted(executor, answer.length, keys.size()));
    }
    Set<BlockKey> held = new HashSet<>();
    for (int i = 0; i < answer.length; i++) {
      if (answer[i] == 1) {
        held.add(keys.get(i));
      }
    }
    return held;
  }

  /**
   * The layouts of the tables of a block.
   *
   * @throws DeviceFetchException if the request fails; names the block and both executors
   */
  public List<TableLayout> tables(String executor, DeviceBlock block)
      throws DeviceFetchException, InterruptedException {
    try (DataInputStream in = ask(executor, block, HostReadMessages.tables(block))) {
      return HostReadMessages.readLayouts(in);
    } catch (IOException e) {
      throw failure(executor, block, e);
    }
  }

  /**
   * Copies a table.
   *
   * @param table index in the block, from 0
   * @param to address of memory for the whole table
   * @throws DeviceFetchException if the request fails; names the block and both executors
   */
  public void read(String executor, DeviceBlock block, int table, TableLayout layout, long to)
      throws DeviceFetchException, InterruptedException {
    for (long done = 0; done < layout.bytes(); done += HostReadMessages.MAX_BYTES) {
      int length = (int) Math.min(HostReadMessages.MAX_BYTES, layout.bytes() - done);
      byte[] request =
          HostReadMessages.read(new HostReadMessages.Piece(block, table, done, length));
      try (DataInputStream in = ask(executor, block, request)) {
        byte[] bytes = in.readAllBytes();
        if (bytes.length != length) {
          throw new IOException(bytes.length + " bytes came instead of " + length);
        }
        Memory.view(this, to + done, length).put(bytes);
      } catch (IOException e) {
        throw failure(executor, block, e);
      }
    }
  }

  private DataInputStream ask(String executor, DeviceBlock block, byte[] request)
      throws IOException, InterruptedException {
    DataInputStream in = DeviceBlockMessages.read(requests.send(executor, request));
    if (in.readByte() == HostReadMessages.MISSING) {
      throw new DeviceFetchException(
          block, block + " is not on the GPU of executor " + executor + " (any more)", null);
    }
    return in;
  }

  private DeviceFetchException failure(String executor, DeviceBlock block, IOException e) {
    return e instanceof DeviceFetchException missing
        ? missing
        : new DeviceFetchException(
            block,
            "%s did not come from the GPU of executor %s to the host of executor %s: %s"
                .formatted(block, executor, reader, e.getMessage()),
            e);
  }
}
