# needs: nbclient, nbformat
# %% start
import nbclient
import nbformat

book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1")])
nbclient.NotebookClient(book, timeout=60, kernel_name="python3").execute()

# %% after
import nbclient
import nbformat

book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(2)")])
nbclient.NotebookClient(book, timeout=60, kernel_name="python3").execute()
assert "2" in book.cells[0].outputs[0].text
