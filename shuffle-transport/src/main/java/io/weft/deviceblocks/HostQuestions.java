package io.weft.deviceblocks;

import io.weft.catalog.BlockKey;
import io.weft.table.TableLayout;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * The messages of readers that copy device blocks to host memory, or ask which map outputs are on a
 * GPU. Big-endian.
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
final class HostQuestions {
  static final byte HELD = 16;
  static final byte TABLES = 17;
  static final byte READ = 18;

  static final byte THERE = 0;
  static final byte MISSING = 1;

  /** The most bytes in one answer. */
  static final int MOST_BYTES = 1 << 22;

  private static final int MOST_OUTPUTS = 1 << 20;
  private static final int MOST_TABLES = 1 << 20;
  private static final int MOST_LAYOUT_BYTES = 1 << 26;
  private static final long MOST_TABLE_BYTES = Integer.MAX_VALUE;

  private HostQuestions() {}

  /**
   * A range of bytes of a table.
   *
   * @param table index in the block, from 0
   * @param offset of the first byte in the table
   * @param length 0 to {@link #MOST_BYTES}
   */
  record Piece(DeviceBlock block, int table, long offset, int length) {}

  static byte[] held(List<BlockKey> keys) {
    return BlockQuestions.message(
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
    int count = count(in, MOST_OUTPUTS, "map outputs");
    List<BlockKey> keys = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      keys.add(new BlockKey(in.readInt(), in.readLong()));
    }
    return keys;
  }

  static byte[] tables(DeviceBlock block) {
    return BlockQuestions.message(
        out -> {
          out.writeByte(TABLES);
          write(out, block);
        });
  }

  static byte[] read(Piece piece) {
    return BlockQuestions.message(
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
        readBlock(in), in.readInt(), in.readLong(), count(in, MOST_BYTES, "bytes of a table"));
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
    return BlockQuestions.message(
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
    int count = count(in, MOST_TABLES, "tables");
    List<TableLayout> layouts = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      byte[] bytes = in.readNBytes(count(in, MOST_LAYOUT_BYTES, "bytes of a layout"));
      try {
        layouts.add(TableLayout.fromBytes(bytes, MOST_TABLE_BYTES));
      } catch (IllegalArgumentException e) {
        throw new IOException("the layout of a table is damaged", e);
      }
    }
    return layouts;
  }

  private static int count(DataInputStream in, int most, String what) throws IOException {
    int count = in.readInt();
    if (count < 0 || count > most) {
      throw new IOException(what + ": " + count + " is not 0 to " + most);
    }
    return count;
  }
}
