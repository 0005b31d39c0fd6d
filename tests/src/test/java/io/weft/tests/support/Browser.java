package io.weft.tests.support;

import static org.junit.jupiter.api.Assumptions.abort;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A headless Chromium for a class of tests, which reaches no address but this machine's. Use a
 * static field with {@code @RegisterExtension}, after the {@link Workspace} that holds its profile.
 * If there is no Chromium or it does not start, the class is skipped with the reason, or fails if
 * the environment has WEFT_REQUIRE_BROWSER.
 */
public final class Browser implements BeforeAllCallback, AfterAllCallback {
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final String REQUIRED = "WEFT_REQUIRE_BROWSER";

  private final Workspace workspace;

  /** Ends the browser with this JVM, if the class did not get to its end. */
  private final Thread atExit = new Thread(this::end, "end of the browser");

  private ChildProcess process;
  private DevTools tools;

  /** A browser that starts with the class. */
  public Browser(Workspace workspace) {
    this.workspace = workspace;
  }

  @Override
  public void beforeAll(ExtensionContext context) {
    Optional<Path> program = program();
    try {
      if (program.isEmpty()) {
        throw new AssertionError("no browser here: Debian's package is chromium");
      }
      start(program.get());
    } catch (AssertionError | UncheckedIOException | CompletionException e) {
      end();
      if (System.getenv(REQUIRED) != null) {
        throw new AssertionError(REQUIRED + " is set, but there is no browser", e);
      }
      abort(e.getMessage());
    }
  }

  private static Optional<Path> program() {
    return Stream.of(System.getenv("PATH").split(File.pathSeparator))
        .map(folder -> Path.of(folder, "chromium"))
        .filter(Files::isExecutable)
        .findFirst();
  }

  private void start(Path program) {
    String profile = folder("profile").toString();
    List<String> command =
        List.of(
            program.toString(),
            "--headless=new",
            "--no-sandbox", // Chromium's sandbox refuses root.
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-breakpad",
            "--disable-background-networking",
            "--no-first-run",
            "--no-proxy-server",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
            "--force-color-profile=srgb",
            "--hide-scrollbars",
            "--remote-debugging-port=0",
            "--user-data-dir=" + profile,
            "about:blank");
    Map<String, String> environment =
        Map.of("HOME", profile, "XDG_CACHE_HOME", profile, "XDG_CONFIG_HOME", profile);
    process = ChildProcess.start("the browser", command, workspace.folder(), environment);
    Runtime.getRuntime().addShutdownHook(atExit);
    tools = new DevTools(process.awaitLine("DevTools listening on (ws://\\S+)", LIMIT).group(1));
  }

  private Path folder(String name) {
    try {
      return Files.createDirectory(workspace.folder().resolve(name));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Opens an empty tab. */
  public BrowserTab open() {
    return new BrowserTab(tools);
  }

  /** Asks the browser to end, so that it deletes its temporary files. */
  @Override
  public void afterAll(ExtensionContext context) {
    if (tools == null) {
      return;
    }
    try {
      tools.send("", "Browser.close", Map.of());
      tools.close();
      process.awaitExit(LIMIT);
    } finally {
      end();
      Runtime.getRuntime().removeShutdownHook(atExit);
    }
  }

  private void end() {
    if (process != null) {
      process.close();
    }
  }
}
