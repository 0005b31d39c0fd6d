package io.weft.deviceblocks;

import io.weft.catalog.BlockKey;
import io.weft.table.TableLayout;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;

/**
 * The messages between readers and owners of device blocks. Big-endian.
 *
 * <pre>
 *   prepare: byte 1 | int blocks | for each: int shuffle, long map, int partition
 *   answer:  byte 0 | long ticket | int blocks | for each: int tables | for each: int length, layout
 *   answer: byte 1 | int the missing block
 *   send:    byte 2 | long ticket | text executor | long key of the first array
 *   drop:    byte 3 | long ticket
 *   answer to both: nothing
 * </pre>
 */
final class BlockQuestions {
  static final byte PREPARE = 1;
  static final byte SEND = 2;
  static final byte DROP = 3;

  private static final byte READY = 0;
  private static final byte MISSING = 1;
  private static final int MOST_BLOCKS = 1 << 20;
  private static final int MOST_LAYOUT_BYTES = 1 << 26;
  private static final long MOST_TABLE_BYTES = Integer.MAX_VALUE;

  private BlockQuestions() {}

  /**
   * Blocks that are ready to send.
   *
   * @param ticket names the blocks in the send request
   * @param tables of each block
   */
  record Ready(long ticket, List<List<TableLayout>> tables) {}

  /** Writes to a message. */
  interface Writing {
    void to(DataOutputStream out) throws IOException;
  }

  static byte[] message(Writing writing) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      writing.to(out);
    } catch (IOException e) {
      throw new UncheckedIOException(e); // Cannot happen: the stream is in memory.
    }
    return bytes.toByteArray();
  }

  static DataInputStream read(byte[] message) {
    return new DataInputStream(new ByteArrayInputStream(message));
  }

  static byte[] prepare(List<DeviceBlock> blocks) {
    return message(
        out -> {
          out.writeByte(PREPARE);
          out.writeInt(blocks.size());
          for (DeviceBlock block : blocks) {
            out.writeInt(block.key().shuffleId());
            out.writeLong(block.key().mapId());
            out.writeInt(block.partition());
          }
        });
  }

  static List<DeviceBlock> readBlocks(DataInputStream in) throws IOException {
    int count = count(in, MOST_BLOCKS, "blocks");
    List<DeviceBlock> blocks = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      blocks.add(new DeviceBlock(new BlockKey(in.readInt(), in.readLong()), in.readInt(), 0));
    }
    return blocks;
  }

  static byte[] missing(int block) {
    return message(
        out -> {
          out.writeByte(MISSING);
          out.writeInt(block);
        });
  }

  static byte[] ready(Ready ready) {
    return message(
        out -> {
          out.writeByte(READY);
          out.writeLong(ready.ticket());
          out.writeInt(ready.tables().size());
          for (List<TableLayout> tables : ready.tables()) {
            out.writeInt(tables.size());
            for (TableLayout table : tables) {
              byte[] bytes = table.toBytes();
              out.writeInt(bytes.length);
              out.write(bytes);
            }
          }
        });
  }

  /**
   * Reads the answer to {@link #prepare}.
   *
   * @throws DeviceFetchException if a block is missing
   */
  static Ready readReady(byte[] answer, List<DeviceBlock> asked, String owner) throws IOException {
    DataInputStream in = read(answer);
    if (in.readByte() == MISSING) {
      DeviceBlock block = asked.get(count(in, asked.size() - 1, "the missing block"));
      throw new DeviceFetchException(
          block, block + " is not on the GPU of executor " + owner + " (any more)", null);
    }
    long ticket = in.readLong();
    List<List<TableLayout>> tables = new ArrayList<>();
    int blocks = count(in, MOST_BLOCKS, "blocks");
    for (int i = 0; i < blocks; i++) {
      tables.add(readTables(in));
    }
    if (blocks != asked.size()) {
      throw new IOException(blocks + " blocks are the answer for " + asked.size());
    }
    return new Ready(ticket, tables);
  }

  private static List<TableLayout> readTables(DataInputStream in) throws IOException {
    List<TableLayout> tables = new ArrayList<>();
    int count = count(in, MOST_BLOCKS, "tables");
    for (int i = 0; i < count; i++) {
      byte[] bytes = in.readNBytes(count(in, MOST_LAYOUT_BYTES, "bytes of a layout"));
      try {
        tables.add(TableLayout.fromBytes(bytes, MOST_TABLE_BYTES));
      } catch (IllegalArgumentException e) {
        throw new IOException("the layout of a table is damaged", e);
      }
    }
    return tables;
  }

  private static int count(DataInputStream in, int most, String what) throws IOException {
    int count = in.readInt();
    if (count < 0 || count > most) {
      throw new IOException(what + ": " + count + " is not 0 to " + most);
    }
    return count;
  }
}
