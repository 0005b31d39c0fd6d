import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Copies a CUDA library for one GPU architecture: machine code and PTX for others become zeros,
 * which take no room in an archive. NVIDIA does not document the format of fat binaries, so a part
 * that is not as expected stays as it is. A program of {@code carry}.
 */
final class CutFatbins {
  private static final int MAGIC = 0xba55ed50;
  private static final int HEADER_BYTES = 16;
  private static final int ENTRY_VERSION = 0x101;
  private static final int MACHINE_CODE = 2;

  /** Offsets in the header of an entry. */
  private static final int VERSION_AT = 2;

  private static final int SIZE_AT = 4;
  private static final int PAYLOAD_AT = 8;
  private static final int ARCHITECTURE_AT = 28;

  private final ByteBuffer file;
  private final int architecture;
  private long removed;
  private int kept;

  private CutFatbins(byte[] file, int architecture) {
    this.file = ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN);
    this.architecture = architecture;
  }

  /**
   * Runs the copy.
   *
   * @param args the library, or a wheel or jar with it; its name there; the new file; the
   *     architecture, such as 90 for compute capability 9.0
   */
  public static void main(String[] args) throws IOException {
    byte[] library = read(Path.of(args[0]), args[1]);
    CutFatbins cut = new CutFatbins(library, Integer.parseInt(args[3]));
    cut.cutAll();
    if (cut.kept == 0) {
      throw new IOException(args[0] + " has no machine code for architecture " + args[3]);
    }
    Files.write(Path.of(args[2]), library);
    System.out.printf(
        "%s: %d of %d MiB are for other GPUs than architecture %s%n",
        args[1], cut.removed >> 20, library.length >> 20, args[3]);
  }

  private static byte[] read(Path from, String name) throws IOException {
    if (!from.toString().endsWith(".whl") && !from.toString().endsWith(".jar")) {
      return Files.readAllBytes(from);
    }
    try (ZipFile archive = new ZipFile(from.toFile())) {
      ZipEntry entry =
          archive.stream()
              .filter(each -> each.getName().endsWith("/" + name))
              .findFirst()
              .orElseThrow(() -> new IOException(from + " has no " + name));
      try (InputStream in = archive.getInputStream(entry)) {
        return in.readAllBytes();
      }
    }
  }

  private void cutAll() {
    for (int at = 0; at + HEADER_BYTES <= file.capacity(); at += Long.BYTES) {
      if (file.getInt(at) == MAGIC
          && file.getShort(at + 4) == 1
          && file.getShort(at + 6) == HEADER_BYTES) {
        long end = at + HEADER_BYTES + file.getLong(at + 8);
        if (end <= file.capacity() && hasWanted(at + HEADER_BYTES, (int) end)) {
          cut(at + HEADER_BYTES, (int) end);
        }
      }
    }
  }

  /** Whether all entries are as expected, and one is machine code of the architecture. */
  private boolean hasWanted(int from, int end) {
    boolean found = false;
    int at = from;
    while (at < end) {
      if (at + 64 > end || file.getShort(at + VERSION_AT) != ENTRY_VERSION || next(at) > end) {
        return false;
      }
      found |= isWanted(at);
      at = (int) next(at);
    }
    return found;
  }

  private boolean isWanted(int entry) {
    return file.getShort(entry) == MACHINE_CODE
        && file.getInt(entry + ARCHITECTURE_AT) == architecture;
  }

  private long next(int entry) {
    long header = file.getInt(entry + SIZE_AT);
    long payload = file.getLong(entry + PAYLOAD_AT);
    return header < 64 || payload < 0 ? Long.MAX_VALUE : entry + header + payload;
  }

  private void cut(int from, int end) {
    for (int at = from; at < end; at = (int) next(at)) {
      if (isWanted(at)) {
        kept++;
      } else {
        int payload = at + file.getInt(at + SIZE_AT);
        removed += next(at) - payload;
        Arrays.fill(file.array(), payload, (int) next(at), (byte) 0);
      }
    }
  }
}
