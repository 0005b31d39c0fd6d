package io.weft.device.probe;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Finds NCCL and its version without loading it. The version is in the name of the linked file, or
 * in the text that the library prints at its start.
 */
final class NcclProbe {
  private static final Pattern IN_NAME = Pattern.compile("libnccl\\.so\\.(\\d+\\.\\d+\\.\\d+)");
  private static final Pattern IN_TEXT = Pattern.compile("NCCL version (\\d+\\.\\d+\\.\\d+)");

  /** The oldest version that is bound, see io.weft.collectives.nccl.NcclLibrary. */
  private static final String OLDEST = "2.19.3";

  private static final int PIECE_BYTES = 1 << 20;
  private static final int LONGEST_TEXT = 64;
  private static final long MOST_BYTES = 1L << 30;

  private final ProbeOptions options;

  NcclProbe(ProbeOptions options) {
    this.options = options;
  }

  Finding library() throws IOException {
    LibraryLocation location = LibraryLocation.ofNccl(options);
    return location.path().isPresent()
        ? found(location.path().get())
        : Finding.no(location.missing());
  }

  private static Finding found(Path library) throws IOException {
    Path file = library.toRealPath();
    String version = versionInName(file).or(() -> versionInFile(file)).orElse("");
    if (version.isEmpty()) {
      return Finding.no(file + " does not say which version of NCCL it is");
    }
    return Versions.isAtLeast(version, OLDEST)
        ? Finding.yes("NCCL " + version + ", " + file)
        : Finding.no("NCCL " + version + ", " + file + ", is older than " + OLDEST);
  }

  private static Optional<String> versionInName(Path file) {
    Matcher matcher = IN_NAME.matcher(file.getFileName().toString());
    return matcher.matches() ? Optional.of(matcher.group(1)) : Optional.empty();
  }

  private static Optional<String> versionInFile(Path file) {
    try (FileChannel channel = FileChannel.open(file)) {
      ByteBuffer piece = ByteBuffer.allocate(PIECE_BYTES);
      long end = Math.min(channel.size(), MOST_BYTES);
      // Pieces overlap, so that no text is cut.
      for (long at = 0; at < end; at += PIECE_BYTES - LONGEST_TEXT) {
        piece.clear();
        int length = channel.read(piece, at);
        String text =
            new String(piece.array(), 0, Math.max(0, length), StandardCharsets.ISO_8859_1);
        Matcher matcher = IN_TEXT.matcher(text);
        if (matcher.find()) {
          return Optional.of(matcher.group(1));
        }
      }
      return Optional.empty();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
