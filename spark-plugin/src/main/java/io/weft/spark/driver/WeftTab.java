package io.weft.spark.driver;

import io.weft.spark.compat.PageFrame;
import jakarta.servlet.http.HttpServletRequest;
import org.apache.spark.SparkContext;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.ui.WebUIPage;
import scala.collection.immutable.Seq;
import scala.xml.Node;
import scala.xml.Unparsed;

/** The Weft tab of the Spark UI. */
public final class WeftTab extends SparkUITab {
  private WeftTab(SparkUI ui, DriverState state) {
    super(ui, "weft");
    attachPage(new WeftPage(this, state));
  }

  /** Adds the tab, if the application has a UI. */
  public static void attach(SparkContext context, DriverState state) {
    if (context.ui().isDefined()) {
      SparkUI ui = context.ui().get();
      ui.attachTab(new WeftTab(ui, state));
    }
  }

  @Override
  public String name() {
    return "Weft";
  }

  /**
   * The only page of the tab. {@link PageFrame} renders Spark's frame, {@link StatusHtml} the
   * contents.
   */
  static final class WeftPage extends WebUIPage {
    private final WeftTab tab;
    private final DriverState state;

    WeftPage(WeftTab tab, DriverState state) {
      super("");
      this.tab = tab;
      this.state = state;
    }

    @Override
    public Seq<Node> render(HttpServletRequest request) {
      return PageFrame.around(request, "Weft", new Unparsed(StatusHtml.of(state)), tab);
    }
  }
}
