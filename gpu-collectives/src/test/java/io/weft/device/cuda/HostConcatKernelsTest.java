package io.weft.device.cuda;

import static io.weft.device.cuda.KernelTable.ints;
import static io.weft.device.cuda.KernelTable.longs;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.device.cuda.KernelRun.Launch;
import io.weft.device.cuda.KernelTable.KernelColumn;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.lifecycle.BeforeContainer;

/** The kernels of concat.cu on the host, as in {@link HostKernelsTest}. */
class HostConcatKernelsTest {
  private static final int GARBAGE = 0xab;

  @BeforeContainer
  static void needsACompiler() {
    assumeTrue(KernelRun.whyNot().isEmpty(), KernelRun::whyNot);
  }

  /** Validity bits are shifted, offsets are adjusted, and bytes are copied. */
  @Property(tries = 20, shrinking = ShrinkingMode.OFF)
  void tablesFollowEachOther(@ForAll long seed) {
    Random random = new Random(seed);
    List<KernelTable> tables = new ArrayList<>();
    tables.add(new KernelTable(random, 1 + random.nextInt(90), 1 + random.nextInt(20), true));
    for (int i = random.nextInt(6); i > 0; i--) {
      tables.add(new KernelTable(random, 1 + random.nextInt(90), tables.get(0)));
    }
    ConcatenatedTables expected = new ConcatenatedTables(tables);
    KernelRun run = new KernelRun();
    List<Integer> sections = expected.launch(run);
    List<ByteBuffer> made = run.run();
    for (int i = 0; i < sections.size(); i++) {
      assertThat(made.get(sections.get(i)).slice())
          .isEqualTo(ByteBuffer.wrap(expected.sections.get(i)));
    }
  }

  /** Launches that concatenate tables, and the expected sections of the result. */
  private static final class ConcatenatedTables {
    private final List<KernelTable> tables;
    private final List<byte[]> sections = new ArrayList<>();

    ConcatenatedTables(List<KernelTable> tables) {
      this.tables = tables;
      for (int c = 0; c < tables.get(0).columns.size(); c++) {
        int number = c;
        add(tables.stream().map(table -> table.columns.get(number)).toList());
      }
    }

    private int rows() {
      return tables.stream().mapToInt(table -> table.rows).sum();
    }

    /** Validity and offsets in whole words, as the kernel writes them. */
    private void add(List<KernelColumn> parts) {
      byte[] bits = new byte[(rows() + 31) / 32 * 4];
      int[] offsets = new int[rows() + 1];
      int bytes = parts.stream().mapToInt(part -> part.data.length).sum();
      ByteBuffer data = ByteBuffer.allocate(bytes);
      int row = 0;
      for (int t = 0; t < parts.size(); t++) {
        KernelColumn part = parts.get(t);
        for (int i = 0; i < tables.get(t).rows; i++, row++) {
          bits[row / 8] |= (byte) ((part.isValid(i) ? 1 : 0) << row % 8);
          offsets[row + 1] =
              part.isString() ? offsets[row] + part.offsets[i + 1] - part.offsets[i] : 0;
        }
        data.put(part.data);
      }
      sections.add(parts.get(0).isNullable() ? bits : new byte[0]);
      sections.add(parts.get(0).isString() ? ints(offsets) : new byte[0]);
      sections.add(data.array());
    }

    /** Returns the buffers of the sections: validity, offsets and data of each column. */
    List<Integer> launch(KernelRun run) {
      int columns = tables.get(0).columns.size();
      List<Integer> results = new ArrayList<>();
      for (int i = 0; i < sections.size(); i++) {
        results.add(run.buffer(sections.get(i).length, i % 3 == 0 ? 0 : GARBAGE));
      }
      int pieces = run.buffer(new byte[tables.size() * columns * 64]);
      ByteBuffer numbers = ByteBuffer.wrap(run.bytes(pieces)).order(ByteOrder.nativeOrder());
      long[] before = new long[columns];
      long chunks = 0;
      long[] firsts = new long[tables.size() + 1];
      for (int t = 0; t < tables.size(); t++) {
        firsts[t + 1] = firsts[t] + tables.get(t).rows;
        for (int c = 0; c < columns; c++) {
          KernelColumn part = tables.get(t).columns.get(c);
          int at = (t * columns + c) * 64;
          if (part.isNullable()) {
            run.link(pieces, at, run.buffer(part.validity), 0);
          }
          if (part.isString()) {
            run.link(pieces, at + 8, run.buffer(ints(part.offsets)), 0);
          }
          run.link(pieces, at + 16, run.buffer(part.data), 0);
          run.link(pieces, at + 24, results.get(3 * c + 2), before[c]);
          numbers.putLong(at + 32, part.data.length).putLong(at + 40, before[c]);
          numbers.putLong(at + 48, chunks);
          chunks += (part.data.length + 4095) / 4096;
          before[c] += part.data.length;
        }
      }
      int firstRows = run.buffer(longs(firsts));
      long words = (firsts[tables.size()] + 31) / 32;
      launch(run, "weft_concat_validity", results, 0, firstRows, pieces, words);
      launch(run, "weft_concat_offsets", results, 1, firstRows, pieces, rows() + 1);
      if (chunks > 0) {
        arguments(run.forEach("weft_concat_bytes", 32 * chunks), firstRows, pieces)
            .address(-1)
            .longs(tables.size(), columns, 0, 0, chunks)
            .end(72);
      }
      return results;
    }

    private static Launch arguments(Launch launch, int firstRows, int pieces) {
      return launch.address(-1).address(firstRows).address(pieces);
    }

    /** Computes one kind of section of all columns that have it. */
    private void launch(
        KernelRun run,
        String kernel,
        List<Integer> results,
        int kind,
        int firstRows,
        int pieces,
        long items) {
      int columns = tables.get(0).columns.size();
      int[] having =
          IntStream.range(0, columns).filter(c -> sections.get(3 * c + kind).length > 0).toArray();
      int list = run.buffer(new byte[16 * having.length]);
      ByteBuffer numbers = ByteBuffer.wrap(run.bytes(list)).order(ByteOrder.nativeOrder());
      for (int i = 0; i < having.length; i++) {
        numbers.putLong(16 * i, having[i]);
        run.link(list, 16 * i + 8, results.get(3 * having[i] + kind), 0);
      }
      if (having.length > 0) {
        arguments(run.forEach(kernel, having.length * items), firstRows, pieces)
            .address(list)
            .longs(tables.size(), columns, having.length, 0, 0)
            .end(72);
      }
    }
  }
}
