package io.weft.logging;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.slf4j.ILoggerFactory;
import org.slf4j.IMarkerFactory;
import org.slf4j.Marker;
import org.slf4j.event.Level;
import org.slf4j.helpers.BasicMDCAdapter;
import org.slf4j.helpers.BasicMarkerFactory;
import org.slf4j.helpers.LegacyAbstractLogger;
import org.slf4j.helpers.MessageFormatter;
import org.slf4j.spi.MDCAdapter;
import org.slf4j.spi.SLF4JServiceProvider;

/** The logs of this process from level INFO up, the last few thousand lines. Thread-safe. */
public final class CapturedLogs implements SLF4JServiceProvider {
  private static final int MAX_LINES = 5000;
  private static final Queue<String> LINES = new ConcurrentLinkedQueue<>();
  private static final List<Consumer<String>> LISTENERS = new CopyOnWriteArrayList<>();

  private final IMarkerFactory markers = new BasicMarkerFactory();
  private final MDCAdapter context = new BasicMDCAdapter();

  /** Lines such as "WARN [executor 2 rank 0/2 of 5f3a9c01] failed: …". */
  public static List<String> lines() {
    return List.copyOf(LINES);
  }

  public static void clear() {
    LINES.clear();
  }

  /** Runs an action with every line, on the thread that logs it, until it is closed. */
  public interface Listening extends AutoCloseable {
    @Override
    void close();
  }

  /** Runs the action with every line, so that a test can block a thread at a log statement. */
  public static Listening onLine(Consumer<String> action) {
    LISTENERS.add(action);
    return () -> LISTENERS.remove(action);
  }

  @Override
  public ILoggerFactory getLoggerFactory() {
    return CapturingLogger::new;
  }

  @Override
  public IMarkerFactory getMarkerFactory() {
    return markers;
  }

  @Override
  public MDCAdapter getMDCAdapter() {
    return context;
  }

  @Override
  public String getRequestedApiVersion() {
    return "2.0.99";
  }

  @Override
  public void initialize() {
    // The fields need no initialization.
  }

  private static final class CapturingLogger extends LegacyAbstractLogger {
    private static final long serialVersionUID = 1L;

    private CapturingLogger(String loggerName) {
      this.name = loggerName;
    }

    @Override
    protected String getFullyQualifiedCallerName() {
      return null;
    }

    @Override
    protected void handleNormalizedLoggingCall(
        Level level, Marker marker, String pattern, Object[] arguments, Throwable cause) {
      String line = level + " " + MessageFormatter.basicArrayFormat(pattern, arguments);
      LINES.add(line);
      LISTENERS.forEach(listener -> listener.accept(line));
      if (LINES.size() > MAX_LINES) {
        LINES.poll();
      }
    }

    @Override
    public boolean isTraceEnabled() {
      return false;
    }

    @Override
    public boolean isDebugEnabled() {
      return false;
    }

    @Override
    public boolean isInfoEnabled() {
      return true;
    }

    @Override
    public boolean isWarnEnabled() {
      return true;
    }

    @Override
    public boolean isErrorEnabled() {
      return true;
    }
  }
}
