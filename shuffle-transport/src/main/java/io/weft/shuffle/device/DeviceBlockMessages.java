package io.weft.shuffle.device;

import io.weft.shuffle.store.BlockKey;
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
 *   answer:  byte 1 | int the missing block
 *   send:    byte 2 | long ticket | text executor | long key of the first array
 *   drop:    byte 3 | long ticket
 *   answer to both: nothing
 * </pre>
 */
final class DeviceBlockMessages {
  static final byte PREPARE = 1;
  static final byte SEND = 2;
  static final byte DROP = 3;

  private static final byte READY = 0;
  private static final byte MISSING = 1;
  private static final int MAX_BLOCKS = 1 << 20;
  private static final int MAX_LAYOUT_BYTES = 1 << 26;
  private static final long MAX_TABLE_BYTES = Integer.MAX_VALUE;

  private DeviceBlockMessages() {}

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
    int count = count(in, MAX_BLOCKS, "blocks");
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
  static Ready readReady(byte[] answer, List<DeviceBlock> requested, String owner)
      throws IOException {
    DataInputStream in = read(answer);
    if (in.readByte() == MISSING) {
      DeviceBlock block = requested.get(count(in, requested.size() - 1, "the missing block"));
      throw new DeviceFetchException(
          block, block + " is not on the GPU of executor " + owner + " (any more)", null);
    }
    long ticket = in.readLong();
    List<List<TableLayout>> tables = new ArrayList<>();
    int blocks = count(in, MAX_BLOCKS, "blocks");
    for (int i = 0; i < blocks; i++) {
      tables.add(readTables(in));
    }
    if (blocks != requested.size()) {
      throw new IOException(blocks + " blocks are the answer for " + requested.size());
    }
    return new Ready(ticket, tables);
  }

  private static List<TableLayout> readTables(DataInputStream in) throws IOException {
    List<TableLayout> tables = new ArrayList<>();
    int count = count(in, MAX_BLOCKS, "tables");
    for (int i = 0; i < count; i++) {
      byte[] bytes = in.readNBytes(count(in, MAX_LAYOUT_BYTES, "bytes of a layout"));
      try {
        tables.add(TableLayout.fromBytes(bytes, MAX_TABLE_BYTES));
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

  /**
   * The messages of readers that copy device blocks to host memory, or ask which map outputs are on
   * a GPU. Big-endian.
   *
   * <pre>
   *   held:    byte 16 | int outputs | for each: int shuffle, long map
   *   answer:  for each: byte 1 if it is on the GPU, else 0
   *   tables:  byte 17 | block
   *   answer:  byte 0 | int tables | for each: int length, layout
   *   read:    byte 18 | block | int table | long offset | int length
   *   answer:  byte 0 | the bytes
   *   answer to both: byte 1 if the block is missing
   *   block:   int shuffle, long map, int partition
   * </pre>
   */
  static final class HostReadMessages {
    static final byte HELD = 16;
    static final byte TABLES = 17;
    static final byte READ = 18;

    static final byte THERE = 0;
    static final byte MISSING = 1;

    /** The most bytes in one answer. */
    static final int MAX_BYTES = 1 << 22;

    private static final int MAX_OUTPUTS = 1 << 20;
    private static final int MAX_TABLES = 1 << 20;

    private HostReadMessages() {}

    /**
     * A range of bytes of a table.
     *
     * @param table index in the block, from 0
     * @param offset of the first byte in the table
     * @param length 0 to {@link #MAX_BYTES}
     */
    record Piece(DeviceBlock block, int table, long offset, int length) {}

    static byte[] held(List<BlockKey> keys) {
      return DeviceBlockMessages.message(
          out -> {
            out.writeByte(HELD);
            out.writeInt(keys.size());
            for (BlockKey key : keys) {
              out.writeInt(key.shuffleId());
              out.writeLong(key.mapId());
            }
          });
    }

    static List<BlockKey> readKeys(DataInputStream in) throws IOException {
      int count = count(in, MAX_OUTPUTS, "map outputs");
      List<BlockKey> keys = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        keys.add(new BlockKey(in.readInt(), in.readLong()));
      }
      return keys;
    }

    static byte[] tables(DeviceBlock block) {
      return DeviceBlockMessages.message(
          out -> {
            out.writeByte(TABLES);
            write(out, block);
          });
    }

    static byte[] read(Piece piece) {
      return DeviceBlockMessages.message(
          out -> {
            out.writeByte(READ);
            write(out, piece.block());
            out.writeInt(piece.table());
            out.writeLong(piece.offset());
            out.writeInt(piece.length());
          });
    }

    static Piece readPiece(DataInputStream in) throws IOException {
      return new Piece(
          readBlock(in), in.readInt(), in.readLong(), count(in, MAX_BYTES, "bytes of a table"));
    }

    private static void write(DataOutputStream out, DeviceBlock block) throws IOException {
      out.writeInt(block.key().shuffleId());
      out.writeLong(block.key().mapId());
      out.writeInt(block.partition());
    }

    static DeviceBlock readBlock(DataInputStream in) throws IOException {
      return new DeviceBlock(new BlockKey(in.readInt(), in.readLong()), in.readInt(), 0);
    }

    static byte[] layouts(List<TableLayout> layouts) {
      return DeviceBlockMessages.message(
          out -> {
            out.writeByte(THERE);
            out.writeInt(layouts.size());
            for (TableLayout layout : layouts) {
              byte[] bytes = layout.toBytes();
              out.writeInt(bytes.length);
              out.write(bytes);
            }
          });
    }

    static List<TableLayout> readLayouts(DataInputStream in) throws IOException {
      int count = count(in, MAX_TABLES, "tables");
      List<TableLayout> layouts = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        byte[] bytes = in.readNBytes(count(in, MAX_LAYOUT_BYTES, "bytes of a layout"));
        try {
          layouts.add(TableLayout.fromBytes(bytes, MAX_TABLE_BYTES));
        } catch (IllegalArgumentException e) {
          throw new IOException("the layout of a table is damaged", e);
        }
      }
      return layouts;
    }
  }
}
