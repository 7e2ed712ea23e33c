import 'uplot/dist/uPlot.min.css';

import './base.css';
import './notice.css';
import './chart.css';
import './panel.css';
import './drawings.css';
import './reportPage.css';
import './elsewhere.css';
import './cellMark.css';
import './gpu.css';
import './options.css';
import './forcedColors.css';
import './report.css';
