import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/**
 * Makes the Python package: a wheel with the modules and the jar. Equal input gives equal bytes,
 * because entries are sorted, have one time, and are not compressed. The build runs this file by
 * {@code java Wheel.java}, without Python.
 *
 * <p>Format: <a
 * href="https://packaging.python.org/en/latest/specifications/binary-distribution-format/">binary
 * distribution format</a>.
 */
public final class Wheel {
  private static final String MODULE = "weft";

  private Wheel() {}

  /**
   * Writes the wheel.
   *
   * @param arguments folder with the modules, jar, licence, Maven version, time (ISO 8601), folder
   *     for the wheel
   */
  public static void main(String[] arguments) throws IOException {
    Path sources = Path.of(arguments[0]);
    Path jar = Path.of(arguments[1]);
    Path licence = Path.of(arguments[2]);
    // Python orders versions by its own rules, which do not know Maven's snapshots.
    String version = arguments[3].replace("-SNAPSHOT", ".dev0");
    OffsetDateTime time = OffsetDateTime.parse(arguments[4]);
    String info = "weft_spark-" + version + ".dist-info/";
    Map<String, byte[]> files = modules(sources);
    files.put(MODULE + "/jars/" + jar.getFileName(), Files.readAllBytes(jar));
    files.put(info + "METADATA", bytes(metadata(version)));
    files.put(info + "WHEEL", bytes(wheel()));
    files.put(info + "licenses/LICENSE", Files.readAllBytes(licence));
    files.put(info + "RECORD", bytes(record(files, info + "RECORD")));
    Path target = Path.of(arguments[5]).resolve("weft_spark-" + version + "-py3-none-any.whl");
    write(target, files, time.withOffsetSameInstant(ZoneOffset.UTC).toLocalDateTime());
  }

  private static Map<String, byte[]> modules(Path sources) throws IOException {
    Map<String, byte[]> files = new TreeMap<>();
    try (Stream<Path> all = Files.list(sources.resolve(MODULE))) {
      List<Path> modules = all.filter(Wheel::isModule).toList();
      for (Path module : modules) {
        files.put(MODULE + "/" + module.getFileName(), Files.readAllBytes(module));
      }
    }
    return files;
  }

  private static boolean isModule(Path file) {
    String name = file.getFileName().toString();
    return name.endsWith(".py") || name.equals("py.typed");
  }

  private static String metadata(String version) {
    return """
        Metadata-Version: 2.4
        Name: weft-spark
        Version: %s
        Summary: Rows of a Spark data frame as numpy, pyarrow or torch in other processes, without a copy
        License-Expression: Apache-2.0
        License-File: LICENSE
        Requires-Python: >=3.9
        Requires-Dist: numpy>=1.22
        Provides-Extra: arrow
        Requires-Dist: pyarrow; extra == "arrow"
        Provides-Extra: torch
        Requires-Dist: torch; extra == "torch"
        """
        .formatted(version);
  }

  private static String wheel() {
    return """
        Wheel-Version: 1.0
        Generator: weft
        Root-Is-Purelib: true
        Tag: py3-none-any
        """;
  }

  /** Every file with its hash and length; the record itself has neither. */
  private static String record(Map<String, byte[]> files, String self) {
    StringBuilder lines = new StringBuilder();
    files.forEach(
        (name, content) ->
            lines.append("%s,sha256=%s,%d\n".formatted(name, hash(content), content.length)));
    return lines.append(self).append(",,\n").toString();
  }

  private static String hash(byte[] content) {
    try {
      byte[] hash = MessageDigest.getInstance("SHA-256").digest(content);
      return Base64.getUrlEncoder().withoutPadding().encodeToString(hash);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JVM has SHA-256", e);
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static void write(Path target, Map<String, byte[]> files, LocalDateTime time)
      throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ZipOutputStream zip = new ZipOutputStream(bytes)) {
      for (Map.Entry<String, byte[]> file : files.entrySet()) {
        zip.putNextEntry(entry(file.getKey(), file.getValue(), time));
        zip.write(file.getValue());
        zip.closeEntry();
      }
    }
    try (OutputStream out = Files.newOutputStream(target)) {
      bytes.writeTo(out);
    }
  }

  private static ZipEntry entry(String name, byte[] content, LocalDateTime time) {
    CRC32 crc = new CRC32();
    crc.update(content);
    ZipEntry entry = new ZipEntry(name);
    entry.setMethod(ZipEntry.STORED);
    entry.setSize(content.length);
    entry.setCrc(crc.getValue());
    entry.setTimeLocal(time);
    return entry;
  }
}
