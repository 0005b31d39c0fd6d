package io.weft.tests.support;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Programs with the jars of Spark Connect's client, and no others. */
public final class ConnectClient {
  private ConnectClient() {}

  /** Starts a program of the package {@code application}. */
  public static ChildProcess start(Class<?> program, Object... arguments) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of(BuildTree.jvmOpens()));
    command.addAll(Jvm.shortLived());
    command.addAll(List.of("-cp", classPath(), program.getName()));
    for (Object argument : arguments) {
      command.add(argument.toString());
    }
    return ChildProcess.start(program.getSimpleName(), command, Path.of("/"), Map.of());
  }

  private static String classPath() {
    try {
      return Stream.concat(
              Stream.of(ApplicationJar.get()), SparkHome.jars("connect-client").stream())
          .map(Path::toString)
          .collect(Collectors.joining(File.pathSeparator));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
