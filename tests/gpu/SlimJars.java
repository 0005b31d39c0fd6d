import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/**
 * Copies jars for a carry: entries uncompressed, so that one archive over all of them is smaller,
 * and without native code of other machines. Licence files and folder entries stay. A program of
 * {@code carry}.
 */
final class SlimJars {
  private static final Pattern NATIVE = Pattern.compile(".*\\.(dll|dylib|jnilib|so|a)(\\.[0-9]+)*");

  /** The names of this processor in paths of native code. */
  private static final Pattern HERE =
      Pattern.compile(
          System.getProperty("os.arch").equals("amd64")
              ? ".*(x86[-_]64|amd64).*"
              : ".*(aarch64|aarch_64|arm64).*");

  private SlimJars() {}

  /**
   * A line of the list.
   *
   * @param artifact the jar, without Scala's version and its own
   * @param kept beginnings of paths; if there are any, all others are dropped
   * @param dropped beginnings of paths
   */
  private record Rule(String artifact, List<String> kept, List<String> dropped) {
    static Rule of(String line) {
      List<String> words = Arrays.asList(line.split(" +"));
      return new Rule(words.get(0), with("+", words), with("-", words));
    }

    private static List<String> with(String sign, List<String> words) {
      return words.stream()
          .skip(1)
          .filter(w -> w.startsWith(sign))
          .map(w -> w.substring(1))
          .toList();
    }

    boolean names(String file) {
      return file.matches(Pattern.quote(artifact) + "(_[0-9.]+)?-[0-9].*\\.jar");
    }

    boolean keeps(String entry) {
      return entry.startsWith("META-INF/")
          || ((kept.isEmpty() || kept.stream().anyMatch(entry::startsWith))
              && dropped.stream().noneMatch(entry::startsWith));
    }
  }

  /**
   * Runs the copy.
   *
   * @param args the folder of the jars, the new folder, and a list of the jars to copy; without a
   *     list, all
   */
  public static void main(String[] args) throws IOException {
    Path to = Files.createDirectories(Path.of(args[1]));
    List<Path> jars;
    try (Stream<Path> all = Files.list(Path.of(args[0]))) {
      jars = all.filter(each -> each.toString().endsWith(".jar")).sorted().toList();
    }
    List<Rule> rules = new ArrayList<>();
    if (args.length > 2) {
      Files.readAllLines(Path.of(args[2])).stream()
          .filter(line -> !line.isBlank() && !line.startsWith("#"))
          .forEach(line -> rules.add(Rule.of(line)));
    }
    for (Rule rule : rules) {
      if (jars.stream().noneMatch(jar -> rule.names(jar.getFileName().toString()))) {
        throw new IOException("no jar in " + args[0] + " is " + rule.artifact() + " of " + args[2]);
      }
    }
    for (Path jar : jars) {
      String name = jar.getFileName().toString();
      Rule rule =
          rules.stream()
              .filter(each -> each.names(name))
              .findFirst()
              .orElse(rules.isEmpty() ? Rule.of(name) : null);
      if (rule != null) {
        copy(jar, to.resolve(name), rule);
      }
    }
  }

  private static void copy(Path from, Path to, Rule rule) throws IOException {
    try (ZipFile in = new ZipFile(from.toFile());
        OutputStream bytes = Files.newOutputStream(to);
        ZipOutputStream out = new ZipOutputStream(bytes)) {
      out.setMethod(ZipOutputStream.STORED);
      List<String> names = new ArrayList<>();
      in.stream().filter(each -> isWanted(each, rule)).forEach(each -> names.add(each.getName()));
      // Similar files come together; the manifest stays first, as tools expect.
      names.sort((a, b) -> order(a).compareTo(order(b)));
      for (String name : names) {
        write(out, name, in.getInputStream(in.getEntry(name)).readAllBytes());
      }
    }
  }

  private static boolean isWanted(ZipEntry entry, Rule rule) {
    String name = entry.getName();
    String lower = name.toLowerCase(Locale.ROOT);
    boolean isForeign =
        NATIVE.matcher(lower).matches()
            && !(lower.contains("linux") && HERE.matcher(lower).matches());
    return !isForeign
        && !name.equals("META-INF/INDEX.LIST")
        && rule.keeps(name);
  }

  private static String order(String name) {
    int dot = name.lastIndexOf('.');
    return name.equals("META-INF/MANIFEST.MF") ? "" : name.substring(dot + 1) + " " + name;
  }

  private static void write(ZipOutputStream out, String name, byte[] content) throws IOException {
    ZipEntry entry = new ZipEntry(name);
    CRC32 sum = new CRC32();
    sum.update(content);
    entry.setSize(content.length);
    entry.setCrc(sum.getValue());
    entry.setTime(0);
    out.putNextEntry(entry);
    out.write(content);
    out.closeEntry();
  }
}
